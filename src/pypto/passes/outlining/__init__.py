"""The machine that turns scopes into functions, shared by the three passes that outline.

* ``policy``: what differs between the passes;
* ``scan``: one walk over a function that says, for each scope, what it takes in, writes and gives, and which written
  tensors each loop and branch has to pass on;
* ``kernel``: the function that a scope becomes; ``launch``: the call or submit that takes its place;
* ``rewrite``: the function around the scopes, where written tensors change their names;
* ``machine``: a program, function by function.
"""
