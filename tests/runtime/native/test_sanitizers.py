"""A short run of the stress program under each sanitizer; ``sanitize.py`` runs it for as long as wanted."""

from __future__ import annotations

import pytest
from sanitize import NoSanitizer, stress


@pytest.mark.parametrize("kind", ["thread", "address"])
def test_stress(kind):
    try:
        status, text = stress(kind, range(20), seconds=2)
    except NoSanitizer as reason:
        pytest.skip(str(reason))
    assert status == 0, text
    assert text.endswith(" runs\n"), text
