// Matrix products of tiles, for generated kernels: c (+)= a b, on one thread.
//
// Elements are packed to words of 32 bits: a float, two bf16, two or four int8. A word holds what one lane multiplies in
// one step, so that one register-blocked kernel, one packing and one blocking serve all types (a `Policy` says what a word
// is and how it is multiplied). Vectors are those of GCC and Clang, of the widest size that the CPU compiled for has.
#pragma once

#include <new>
#include <utility>

#include "element.h"

#define PTO_MM_INLINE inline __attribute__((always_inline))

namespace pto {
namespace mm {

// --- sizes ----------------------------------------------------------------------------------------------------------

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define PTO_MM_512 1
constexpr int kLanes = 16;
constexpr int kTileRows = 8;  // of c, in registers; and kTileVectors of columns
constexpr int kTileVectors = 2;
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define PTO_MM_256 1
constexpr int kLanes = 8;
constexpr int kTileRows = 6;
constexpr int kTileVectors = 2;
#else
constexpr int kLanes = 4;
constexpr int kTileRows = 4;
constexpr int kTileVectors = 2;
#endif

constexpr int kTileColumns = kTileVectors * kLanes;
constexpr int64_t kDepth = 512;     // words of k in a block: c is read and written once for each
constexpr int64_t kHeight = 192;    // rows in a block of a: it stays in the second cache
constexpr int64_t kWidth = 1024;    // columns in a block of b: two megabytes, for the third
constexpr int64_t kThin = 8;        // so few rows (columns) are multiplied while b (a) streams by, without packing it
constexpr int64_t kStreamedRows = 64;  // so many rows are multiplied while a b of kStreamedSize elements streams by
constexpr int64_t kStreamedSize = 32768;
constexpr int64_t kSums = 32768;    // of them, of kSumsWidth columns at most, that stay in the second cache
constexpr int64_t kSumsWidth = 2048;
constexpr int64_t kStep = 8;        // rows of b that stream by together

// --- memory ---------------------------------------------------------------------------------------------------------

constexpr std::align_val_t kAlign{64};

// Memory of this thread, aligned for vectors; valid until the thread's next call. Kept until the thread ends.
inline void* workspace(size_t bytes) {
    struct Buffer {
        void* data = nullptr;
        size_t size = 0;
        ~Buffer() { ::operator delete(data, kAlign); }
    };
    static thread_local Buffer buffer;
    if (bytes > buffer.size) {
        ::operator delete(buffer.data, kAlign);
        buffer.data = nullptr;
        buffer.size = 0;
        buffer.data = ::operator new(bytes, kAlign);
        buffer.size = bytes;
    }
    return buffer.data;
}

// --- vectors --------------------------------------------------------------------------------------------------------

template <class T, int N>
struct VecOf {
    typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
typedef VecOf<float, kLanes>::type F32;
typedef VecOf<int32_t, kLanes>::type I32;
typedef VecOf<uint32_t, kLanes>::type U32;
typedef VecOf<uint32_t, 4>::type U32x4;

template <class V>
PTO_MM_INLINE V load(const void* from) {
    V made;
    memcpy(&made, from, sizeof made);
    return made;
}

template <class V>
PTO_MM_INLINE void store(void* to, V value) {
    memcpy(to, &value, sizeof value);
}

// Instructions are written by their names where vectors have no operator for them: <immintrin.h> takes longer to read than
// many a product to compile.

// The first `count` of as many elements as a vector has; zeros behind them. Nothing behind them is read.
template <class V, class T>
PTO_MM_INLINE V load_some(const T* from, int64_t count) {
    if (count >= kLanes) return load<V>(from);
#if PTO_MM_512
    const uint16_t mask = static_cast<uint16_t>((1u << count) - 1);
    typedef const char Memory[sizeof(V)];
    const Memory& memory = *reinterpret_cast<const Memory*>(from);
    V made;
    if constexpr (sizeof(T) == 4) __asm__("vmovdqu32 %1, %0%{%2%}%{z%}" : "=v"(made) : "m"(memory), "Yk"(mask));
    if constexpr (sizeof(T) == 2) __asm__("vmovdqu16 %1, %0%{%2%}%{z%}" : "=v"(made) : "m"(memory), "Yk"(mask));
    if constexpr (sizeof(T) == 1) __asm__("vmovdqu8 %1, %0%{%2%}%{z%}" : "=v"(made) : "m"(memory), "Yk"(mask));
    return made;
#else
    alignas(64) char copy[sizeof(V)] = {};
    memcpy(copy, from, static_cast<size_t>(count) * sizeof(T));
    return load<V>(copy);
#endif
}

template <class V, class T>
PTO_MM_INLINE void store_some(T* to, V value, int64_t count) {
    static_assert(sizeof(T) == 4);
    if (count >= kLanes) return store(to, value);
#if PTO_MM_512
    const uint16_t mask = static_cast<uint16_t>((1u << count) - 1);
    typedef char Memory[sizeof(V)];
    __asm__("vmovdqu32 %1, %0%{%2%}" : "+m"(*reinterpret_cast<Memory*>(to)) : "v"(value), "Yk"(mask));
#else
    memcpy(to, &value, static_cast<size_t>(count) * sizeof(T));
#endif
}

#if PTO_MM_512 || PTO_MM_256
// The elements of the lower part of a register, wider.
#define PTO_MM_CONVERT(name, instruction)                           \
    template <class To, class From>                                 \
    PTO_MM_INLINE To name(From from) {                              \
        To made;                                                    \
        __asm__(instruction " %1, %0" : "=v"(made) : "v"(from));    \
        return made;                                                \
    }
PTO_MM_CONVERT(shorts_to_words, "vpmovzxwd")
PTO_MM_CONVERT(bytes_to_words, "vpmovzxbd")
PTO_MM_CONVERT(signed_bytes_to_words, "vpmovsxbd")
PTO_MM_CONVERT(halves_to_floats, "vcvtph2ps")
#undef PTO_MM_CONVERT

// Eight bytes in the lower half of a register.
template <class T>
PTO_MM_INLINE VecOf<int64_t, 2>::type in_register(T eight) {
    static_assert(sizeof(T) == 8);
    VecOf<int64_t, 2>::type made{};
    made[0] = (int64_t)eight;
    return made;
}
#endif

// Elements to words. GCC makes many instructions of a conversion to the widest vectors, or by more than twice the size,
// where the CPU has one.
template <int N>
PTO_MM_INLINE typename VecOf<uint32_t, N>::type widen(typename VecOf<uint16_t, N>::type narrow) {
    typedef typename VecOf<uint32_t, N>::type Wide;
#if PTO_MM_512
    if constexpr (N == 16) return shorts_to_words<Wide>(narrow);
#endif
    return __builtin_convertvector(narrow, Wide);
}

PTO_MM_INLINE U32 widen(VecOf<uint8_t, kLanes>::type narrow) {
#if PTO_MM_512
    return bytes_to_words<U32>(narrow);
#else
    return __builtin_convertvector(narrow, U32);
#endif
}

PTO_MM_INLINE I32 widen(VecOf<int8_t, kLanes>::type narrow) {
#if PTO_MM_512
    return signed_bytes_to_words<I32>(narrow);
#elif PTO_MM_256
    return signed_bytes_to_words<I32>(in_register(narrow));
#else
    return __builtin_convertvector(narrow, I32);
#endif
}

// fp16 in the low half of each word, to float. The product brings subnormals to their place, too.
template <class U, class F>
PTO_MM_INLINE F float_of_fp16(U half) {
    const U magnitude = (half & 0x7fff) << 13;
    const F scaled = (F)magnitude * 0x1p112f;
    const U special = (U)(magnitude >= (0x7c00u << 13)) & 0x7f800000;
    return (F)((U)scaled | special | (half & 0x8000) << 16);
}

template <int N>
PTO_MM_INLINE typename VecOf<float, N>::type floats(typename VecOf<uint16_t, N>::type bits, const bf16*) {
    return (typename VecOf<float, N>::type)(widen<N>(bits) << 16);
}

template <int N>
PTO_MM_INLINE typename VecOf<float, N>::type floats(typename VecOf<uint16_t, N>::type bits, const fp16*) {
    typedef typename VecOf<float, N>::type F;
#if PTO_MM_512 || PTO_MM_256
    if constexpr (N == 4) {
        return halves_to_floats<F>(in_register(bits));
    } else {
        return halves_to_floats<F>(bits);
    }
#endif
    return float_of_fp16<typename VecOf<uint32_t, N>::type, F>(widen<N>(bits));
}

template <int N>
PTO_MM_INLINE typename VecOf<float, N>::type floats(typename VecOf<int8_t, N>::type bits, const int8_t*) {
    typedef typename VecOf<float, N>::type F;
    if constexpr (N == kLanes) {
        return __builtin_convertvector(widen(bits), F);
    } else {
        return __builtin_convertvector(bits, F);
    }
}

template <class T>
using Raw = std::conditional_t<sizeof(T) == 2, uint16_t, T>;

template <class T>
PTO_MM_INLINE F32 load_floats(const T* from, int64_t count) {
    typedef typename VecOf<Raw<T>, kLanes>::type V;
    if constexpr (std::is_same_v<T, float>) {
        return load_some<V>(from, count);
    } else {
        return floats<kLanes>(load_some<V>(from, count), from);
    }
}

PTO_MM_INLINE I32 load_ints(const int8_t* from, int64_t count) {
    return widen(load_some<VecOf<int8_t, kLanes>::type>(from, count));
}

using pto::to_float;
PTO_MM_INLINE float to_float(int8_t value) { return value; }

// One instruction, where compilers may contract: they do if not told otherwise.
PTO_MM_INLINE F32 multiply_add(F32 sum, float a, F32 b) { return sum + a * b; }
PTO_MM_INLINE F32 multiply_add(F32 sum, F32 a, F32 b) { return sum + a * b; }
// In unsigned numbers, whose overflow is defined.
PTO_MM_INLINE I32 multiply_add(I32 sum, int32_t a, I32 b) {
    return (I32)((U32)sum + static_cast<uint32_t>(a) * (U32)b);
}
PTO_MM_INLINE I32 multiply_add(I32 sum, I32 a, I32 b) { return (I32)((U32)sum + (U32)a * (U32)b); }

// The sum of all lanes, by halves.
template <class Number, int N = kLanes>
PTO_MM_INLINE Number total(typename VecOf<Number, N>::type v) {
    if constexpr (N == 2) {
        return v[0] + v[1];
    } else {
        typedef typename VecOf<Number, N / 2>::type Half;
        Half halves[2];
        memcpy(halves, &v, sizeof v);
        return total<Number, N / 2>(halves[0] + halves[1]);
    }
}

// --- policies: what a word of 32 bits is ----------------------------------------------------------------------------

// `kGroup` elements along k make a word. `lanes`: the bits of elements side by side, one a lane; `four`: words of elements
// that follow each other along k; `step`: a word of a by words of b. Of floats only: `pair`: words of 2 * kLanes columns,
// in an order of its own, which `order` undoes for the sums.

struct Floats {
    typedef float Out;
    typedef F32 Sum;
    static constexpr int kGroup = 1;
    static constexpr bool kBiased = false;

    template <class T>
    static PTO_MM_INLINE uint32_t bits(T value) {
        return bits_of(to_float(value));
    }
    template <class T>
    static PTO_MM_INLINE U32 lanes(const T* from, int64_t count) {
        return (U32)load_floats(from, count);
    }
    template <class T>
    static PTO_MM_INLINE U32x4 four(const T* from) {
        typedef typename VecOf<Raw<T>, 4>::type V;
        if constexpr (std::is_same_v<T, float>) {
            return load<U32x4>(from);
        } else {
            return (U32x4)floats<4>(load<V>(from), from);
        }
    }
    static PTO_MM_INLINE Sum step(Sum sum, uint32_t a, U32 b) { return multiply_add(sum, float_of(a), (F32)b); }
    template <class T>
    static PTO_MM_INLINE void pair(U32 (&made)[2], const T* from, int64_t) {
        made[0] = lanes(from, kLanes), made[1] = lanes(from + kLanes, kLanes);
    }
    static PTO_MM_INLINE void order(Sum (&)[2]) {}
};

#if PTO_MM_512 && defined(__AVX512BF16__)
// The instruction takes subnormal numbers for zeros.
struct Bf16Pairs {
    typedef float Out;
    typedef F32 Sum;
    static constexpr int kGroup = 2;
    static constexpr bool kBiased = false;

    static PTO_MM_INLINE uint32_t bits(bf16 value) { return value.bits; }
    static PTO_MM_INLINE U32 lanes(const bf16* from, int64_t count) {
        typedef VecOf<uint16_t, kLanes>::type V;
        return widen<kLanes>(load_some<V>(from, count));
    }
    static PTO_MM_INLINE U32x4 four(const bf16* from) { return load<U32x4>(from); }
    static PTO_MM_INLINE Sum step(Sum sum, uint32_t a, U32 b) {
        __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(U32{} + a), "v"(b));
        return sum;
    }
    // Of each 128 bits of two rows the lower half makes words of the first vector, the upper half of the second.
    static PTO_MM_INLINE void pair(U32 (&made)[2], const bf16* from, int64_t along) {
        const U32 row = load<U32>(from), next = load<U32>(from + along);
        __asm__("vpunpcklwd %2, %1, %0" : "=v"(made[0]) : "v"(row), "v"(next));
        __asm__("vpunpckhwd %2, %1, %0" : "=v"(made[1]) : "v"(row), "v"(next));
    }
    static PTO_MM_INLINE void order(Sum (&sums)[2]) {
        Sum begin, end;  // parts 0 and 1 of both, 2 and 3 of both
        __asm__("vshuff32x4 $0x44, %2, %1, %0" : "=v"(begin) : "v"(sums[0]), "v"(sums[1]));
        __asm__("vshuff32x4 $0xee, %2, %1, %0" : "=v"(end) : "v"(sums[0]), "v"(sums[1]));
        __asm__("vshuff32x4 $0xd8, %1, %1, %0" : "=v"(sums[0]) : "v"(begin));  // 0, 2, 1, 3
        __asm__("vshuff32x4 $0xd8, %1, %1, %0" : "=v"(sums[1]) : "v"(end));
    }
};
#endif

#if PTO_MM_512 && defined(__AVX512VNNI__)
// The instruction multiplies unsigned by signed bytes: 128 is added to those of a, and a row of -128 times the sum of each
// column, in front of a panel of b, takes it away.
struct Int8Quads {
    typedef int32_t Out;
    typedef I32 Sum;
    static constexpr int kGroup = 4;
    static constexpr bool kBiased = true;

    static PTO_MM_INLINE uint32_t bits(int8_t value) { return static_cast<uint8_t>(value); }
    static PTO_MM_INLINE U32 lanes(const int8_t* from, int64_t count) {
        typedef VecOf<uint8_t, kLanes>::type V;
        return widen(load_some<V>(from, count));
    }
    static PTO_MM_INLINE U32x4 four(const int8_t* from) { return load<U32x4>(from); }
    static PTO_MM_INLINE Sum step(Sum sum, uint32_t a, U32 b) {
        return dots(sum, U32{} + a, b);
    }
    // Adds the products of four bytes each: unsigned ones of a, signed ones of b.
    static PTO_MM_INLINE Sum dots(Sum sum, U32 a, U32 b) {
        __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
        return sum;
    }
};
using Ints = Int8Quads;
#elif defined(__SSE2__)
struct Int16Pairs {
    typedef int32_t Out;
    typedef I32 Sum;
    static constexpr int kGroup = 2;
    static constexpr bool kBiased = false;

    static PTO_MM_INLINE uint32_t bits(int8_t value) { return static_cast<uint16_t>(value); }
    static PTO_MM_INLINE U32 lanes(const int8_t* from, int64_t count) { return (U32)load_ints(from, count) & 0xffff; }
    static PTO_MM_INLINE U32x4 four(const int8_t* from) {
        typedef VecOf<int8_t, 8>::type V;
        return (U32x4)__builtin_convertvector(load<V>(from), VecOf<int16_t, 8>::type);
    }
    static PTO_MM_INLINE Sum step(Sum sum, uint32_t a, U32 b) {
        U32 products = U32{} + a;
#if defined(__AVX__)
        __asm__("vpmaddwd %1, %0, %0" : "+v"(products) : "v"(b));
#else
        __asm__("pmaddwd %1, %0" : "+x"(products) : "x"(b));
#endif
        return (I32)((U32)sum + products);
    }
};
using Ints = Int16Pairs;
#else
struct Int32s {
    typedef int32_t Out;
    typedef I32 Sum;
    static constexpr int kGroup = 1;
    static constexpr bool kBiased = false;

    static PTO_MM_INLINE uint32_t bits(int8_t value) { return static_cast<uint32_t>(static_cast<int32_t>(value)); }
    static PTO_MM_INLINE U32 lanes(const int8_t* from, int64_t count) { return (U32)load_ints(from, count); }
    static PTO_MM_INLINE U32x4 four(const int8_t* from) {
        typedef VecOf<int8_t, 4>::type V;
        return (U32x4)__builtin_convertvector(load<V>(from), VecOf<int32_t, 4>::type);
    }
    static PTO_MM_INLINE Sum step(Sum sum, uint32_t a, U32 b) {
        return multiply_add(sum, static_cast<int32_t>(a), (I32)b);
    }
};
using Ints = Int32s;
#endif

template <class A, class B>
constexpr bool kIntegers = std::is_same_v<A, int8_t>&& std::is_same_v<B, int8_t>;

template <class A, class B>
struct PolicyOf {
    using type = std::conditional_t<kIntegers<A, B>, Ints, Floats>;
};
#if PTO_MM_512 && defined(__AVX512BF16__)
template <>
struct PolicyOf<bf16, bf16> {
    using type = Bf16Pairs;
};
#endif

// --- packing --------------------------------------------------------------------------------------------------------

constexpr int64_t up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
constexpr int64_t smaller(int64_t a, int64_t b) { return b < a ? b : a; }
constexpr int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }

PTO_MM_INLINE void transpose(U32x4& a, U32x4& b, U32x4& c, U32x4& d) {
#if defined(__clang__) || __GNUC__ >= 12
#define PTO_MM_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PTO_MM_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, U32x4{__VA_ARGS__})
#endif
    const U32x4 e = PTO_MM_SHUFFLE(a, b, 0, 4, 1, 5), f = PTO_MM_SHUFFLE(c, d, 0, 4, 1, 5);
    const U32x4 g = PTO_MM_SHUFFLE(a, b, 2, 6, 3, 7), h = PTO_MM_SHUFFLE(c, d, 2, 6, 3, 7);
    a = PTO_MM_SHUFFLE(e, f, 0, 1, 4, 5);
    b = PTO_MM_SHUFFLE(e, f, 2, 3, 6, 7);
    c = PTO_MM_SHUFFLE(g, h, 0, 1, 4, 5);
    d = PTO_MM_SHUFFLE(g, h, 2, 3, 6, 7);
#undef PTO_MM_SHUFFLE
}

// The word of up to `count` elements along k.
template <class Policy, class T>
PTO_MM_INLINE uint32_t word(const T* from, int64_t along, int64_t count) {
    constexpr int group = Policy::kGroup;
    uint32_t made = 0;
    for (int i = 0; i < group && i < count; ++i) made |= Policy::bits(from[i * along]) << (32 / group * i);
    return made;
}

// Elements stand side by side in memory: `width` words at a time, by vectors. The last vector may reach into what is
// written next. `there`: elements that may be read from `from` on.
template <class Policy, class T>
inline void pack_wide(uint32_t* to, int64_t width, int64_t there, const T* from, int64_t along, int64_t k) {
    constexpr int group = Policy::kGroup;
    for (int64_t at = 0; at < k; at += group, to += width, from += group * along) {
        if (there >= up(width, kLanes) && at + group <= k) {
            for (int64_t i = 0; i < width; i += kLanes) {
                U32 made = Policy::lanes(from + i, kLanes);
                for (int j = 1; j < group; ++j) made |= Policy::lanes(from + j * along + i, kLanes) << (32 / group * j);
                store(to + i, made);
            }
        } else {
            for (int64_t i = 0; i < width; i += kLanes) {
                U32 made{};
                for (int64_t j = 0; j < group && j < k - at && i < there; ++j) {
                    made |= Policy::lanes(from + j * along + i, there - i) << static_cast<int>(32 / group * j);
                }
                store(to + i, made);
            }
        }
    }
}

// Several whole panels of kTileColumns side by side, row by row: memory gives long runs sooner.
template <class Policy, int kPanels, class T>
inline void pack_panels(uint32_t* to, int64_t panel, const T* from, int64_t along, int64_t k) {
    constexpr int group = Policy::kGroup;
    for (int64_t at = 0; at < k; at += group, to += kTileColumns, from += group * along) {
        for (int p = 0; p < kPanels; ++p) {
            for (int i = 0; i < kTileColumns; i += kLanes) {
                U32 made = Policy::lanes(from + p * kTileColumns + i, kLanes);
                for (int j = 1; j < group; ++j) {
                    made |= Policy::lanes(from + j * along + p * kTileColumns + i, kLanes) << (32 / group * j);
                }
                store(to + p * panel + i, made);
            }
        }
    }
}

// Elements along k follow each other in memory, or none do: squares of four by four words are transposed.
template <class Policy, class T>
inline void pack_deep(uint32_t* to, int64_t width, int64_t count, const T* from, int64_t across, int64_t along,
                      int64_t k) {
    constexpr int group = Policy::kGroup;
    constexpr int64_t line = 16;  // words: the cache lines of four rows are used up before the next are
    const int64_t words = parts(k, group), whole = along == 1 ? k / group / 4 * 4 : 0, square = count / 4 * 4;
    if (count < width) memset(to, 0, static_cast<size_t>(words * width) * sizeof *to);
    for (int64_t begin = 0; begin < whole; begin += line) {
        const int64_t end = smaller(begin + line, whole);
        for (int64_t i = 0; i < square; i += 4) {
            const T* row = from + i * across;
            for (int64_t j = begin; j < end; j += 4) {
                U32x4 a = Policy::four(row + j * group), b = Policy::four(row + across + j * group);
                U32x4 c = Policy::four(row + 2 * across + j * group), d = Policy::four(row + 3 * across + j * group);
                transpose(a, b, c, d);
                uint32_t* at = to + j * width + i;
                store(at, a);
                store(at + width, b);
                store(at + 2 * width, c);
                store(at + 3 * width, d);
            }
        }
    }
    for (int64_t i = 0; i < count; ++i) {
        for (int64_t j = i < square ? whole : 0; j < words; ++j) {
            to[j * width + i] = word<Policy>(from + i * across + j * group * along, along, k - j * group);
        }
    }
}

// A panel: `words` rows of `width` words, of which `count` are not zeros. `across` is the distance of elements within a
// row, `along` that along k.
template <class Policy, class T>
inline void pack(uint32_t* to, int64_t width, int64_t count, int64_t there, const T* from, int64_t across, int64_t along,
                 int64_t k) {
    if (across == 1) {
        pack_wide<Policy>(to, width, there, from, along, k);
    } else {
        pack_deep<Policy>(to, width, count, from, across, along, k);
    }
}

// --- the kernel in registers ----------------------------------------------------------------------------------------

// By a fold, not a loop: indices are constants before anything is optimised, so the sums become registers.
template <int... I, class Body>
PTO_MM_INLINE void unrolled(std::integer_sequence<int, I...>, const Body& body) {
    (body(std::integral_constant<int, I>{}), ...);
}

struct Tile {
    int64_t words;          // along k
    const char* a;          // words; strides in bytes
    int64_t a_row, a_step;  // not used of a packed panel
    const char* b;
    int64_t b_step;
    int64_t c_row;  // elements
    int64_t columns;
    bool add;
};

template <class Policy, int kRows, int kVectors, bool kPacked>
__attribute__((noinline)) void multiply_tile(const Tile& tile, typename Policy::Out* c) {
    using Sum = typename Policy::Sum;
    constexpr std::make_integer_sequence<int, kRows> rows{};
    constexpr std::make_integer_sequence<int, kVectors> vectors{};
    const int64_t a_row = kPacked ? 4 : tile.a_row, a_step = kPacked ? 4 * kRows : tile.a_step, b_step = tile.b_step;
    const char* a = tile.a;
    const char* b = tile.b;
    Sum sums[kRows][kVectors];
    unrolled(vectors, [&](auto j) __attribute__((always_inline)) {
        Sum first{};
        if constexpr (Policy::kBiased) first = load<Sum>(b + j * static_cast<int>(sizeof(Sum)));
        unrolled(rows, [&](auto i) __attribute__((always_inline)) { sums[i][j] = first; });
    });
    if constexpr (Policy::kBiased) b += b_step;
    // Of a large c the tile comes from far away while the sums are made.
    if (tile.words >= 128) {
        unrolled(rows, [&](auto i) __attribute__((always_inline)) {
            unrolled(vectors, [&](auto j) __attribute__((always_inline)) {
                __builtin_prefetch(c + i * tile.c_row + j * kLanes, 1);
            });
        });
    }
    for (int64_t k = tile.words; k > 0; --k, a += a_step, b += b_step) {
        U32 right[kVectors];
        unrolled(vectors, [&](auto j) __attribute__((always_inline)) {
            right[j] = load<U32>(b + j * static_cast<int>(sizeof(U32)));
        });
        unrolled(rows, [&](auto i) __attribute__((always_inline)) {
            uint32_t left;
            memcpy(&left, a + i * a_row, sizeof left);
            unrolled(vectors, [&](auto j) __attribute__((always_inline)) {
                sums[i][j] = Policy::step(sums[i][j], left, right[j]);
            });
        });
    }
    const int64_t last = tile.columns - (kVectors - 1) * kLanes, c_row = tile.c_row;
    const bool add = tile.add;
    const auto finish = [&](int64_t behind) __attribute__((always_inline)) {  // columns of the last vector
        unrolled(rows, [&](auto i) __attribute__((always_inline)) {
            typename Policy::Out* to = c + i * c_row;
            unrolled(vectors, [&](auto j) __attribute__((always_inline)) {
                const int64_t count = j + 1 < kVectors ? kLanes : behind;
                if (add) sums[i][j] += load_some<Sum>(to + j * kLanes, count);
                store_some(to + j * kLanes, sums[i][j], count);
            });
        });
    };
    if (last == kLanes) {
        finish(kLanes);
    } else {
        finish(last);
    }
}

template <class Policy, int kRows, bool kPacked>
PTO_MM_INLINE void multiply_rows(const Tile& tile, typename Policy::Out* c) {
    static_assert(kTileVectors == 2);
    if (tile.columns > kLanes) {
        multiply_tile<Policy, kRows, 2, kPacked>(tile, c);
    } else {
        multiply_tile<Policy, kRows, 1, kPacked>(tile, c);
    }
}

// How many rows the next tile has, of those that are left.
constexpr int64_t tile_rows(int64_t left) {
    return left >= kTileRows ? kTileRows : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

template <class Policy, bool kPacked>
inline void multiply(const Tile& tile, int64_t rows, typename Policy::Out* c) {
    switch (rows) {
        case kTileRows: return multiply_rows<Policy, kTileRows, kPacked>(tile, c);
        case kTileRows == 4 ? 0 : 4: return multiply_rows<Policy, 4, kPacked>(tile, c);
        case 2: return multiply_rows<Policy, 2, kPacked>(tile, c);
        default: return multiply_rows<Policy, 1, kPacked>(tile, c);
    }
}

// --- blocks ---------------------------------------------------------------------------------------------------------

template <class Policy, class A, class B>
struct Blocked {
    typedef typename Policy::Out Out;
    static constexpr int kGroup = Policy::kGroup;
    static constexpr int64_t kBias = Policy::kBiased ? 1 : 0;  // rows in front of a panel of b

    Out* c;
    int64_t c_row;
    const A* a;
    int64_t a_row, a_col;
    const B* b;
    int64_t b_row, b_col;
    int64_t m, n, k;
    bool accumulate;

    // Operands that are not packed: where packing costs more than the worse access.
    bool a_direct() const {
        if (Policy::kBiased || sizeof(A) * kGroup != 4) return false;
        if (kGroup > 1 && (a_col != 1 || k % kGroup != 0)) return false;
        return n <= 128 || m * k <= 4096;
    }
    bool b_direct() const {
        if (sizeof(B) != 4 || b_col != 1) return false;
        return m <= 32 || n * k <= 4096;
    }

    void run() const {
        const bool direct_a = a_direct(), direct_b = b_direct();
        const int64_t words = parts(k, kGroup), depth = parts(words, parts(words, kDepth));
        const int64_t height = up(parts(m, parts(m, kHeight)), kTileRows);
        const int64_t width = smaller(n, kWidth);
        const int64_t b_size = (depth + kBias) * up(width, kLanes);
        const int64_t a_size = direct_a ? 0 : depth * smaller(height, m) + kLanes;
        uint32_t* const b_packed = static_cast<uint32_t*>(workspace(static_cast<size_t>(b_size + a_size) * 4));
        uint32_t* const a_packed = b_packed + b_size;
        for (int64_t j = 0; j < n; j += width) {
            for (int64_t at = 0; at < words; at += depth) {
                Block block{j, smaller(width, n - j), at * kGroup, smaller(depth * kGroup, k - at * kGroup), 0, 0};
                block.words = parts(block.k, kGroup);
                pack_b(b_packed, block, direct_b);
                for (int64_t i = 0; i < m; i += height) {
                    const int64_t rows = smaller(height, m - i);
                    if (direct_a) {
                        multiply_block<false>(i, rows, nullptr, b_packed, block, direct_b);
                    } else {
                        pack_a(a_packed, i, rows, block);
                        multiply_block<true>(i, rows, a_packed, b_packed, block, direct_b);
                    }
                }
            }
        }
    }

   private:
    struct Block {
        int64_t column, columns, first, k, words, unused;  // `first`: of k
    };

    void pack_a(uint32_t* to, int64_t row, int64_t rows, const Block& block) const {
        for (int64_t i = 0, step; i < rows; i += step) {
            step = tile_rows(rows - i);
            const A* from = a + (row + i) * a_row + block.first * a_col;
            pack<Policy>(to, step, step, m - row - i, from, a_row, a_col, block.k);
#if PTO_MM_512 && defined(__AVX512VNNI__)
            if constexpr (Policy::kBiased) {
                for (int64_t w = 0; w < step * block.words; w += kLanes) {
                    store(to + w, load<U32>(to + w) ^ 0x80808080u);
                }
            }
#endif
            to += step * block.words;
        }
    }

    static bool in_place(int64_t count, bool direct) { return direct && count % kLanes == 0; }

    void pack_b(uint32_t* to, const Block& block, bool direct) const {
        int64_t j = 0;
        constexpr int kPanels = 4;
        if (b_col == 1 && !direct && !Policy::kBiased && block.k % kGroup == 0) {
            for (; j + kPanels * kTileColumns <= block.columns; j += kPanels * kTileColumns) {
                const int64_t panel = kTileColumns * block.words;
                pack_panels<Policy, kPanels>(to, panel, b + block.first * b_row + block.column + j, b_row, block.k);
                to += kPanels * panel;
            }
        }
        for (; j < block.columns; j += kTileColumns) {
            const int64_t count = smaller(kTileColumns, block.columns - j), width = up(count, kLanes);
            if (!in_place(count, direct)) {
                const B* from = b + block.first * b_row + (block.column + j) * b_col;
                uint32_t* first = to + kBias * width;
                pack<Policy>(first, width, count, count, from, b_col, b_row, block.k);
#if PTO_MM_512 && defined(__AVX512VNNI__)
                if constexpr (Policy::kBiased) {
                    for (int64_t i = 0; i < width; i += kLanes) {
                        I32 sum{};
                        for (int64_t w = 0; w < block.words; ++w) {
                            sum = Policy::dots(sum, U32{} + 0x01010101u, load<U32>(first + w * width + i));
                        }
                        store(to + i, sum * -128);
                    }
                }
#endif
            }
            to += width * (block.words + kBias);
        }
    }

    template <bool kPacked>
    void multiply_block(int64_t row, int64_t rows, const uint32_t* a_packed, const uint32_t* b_packed,
                        const Block& block, bool direct) const {
        Tile tile;
        tile.words = block.words;
        tile.a_row = a_row * static_cast<int64_t>(sizeof(A));
        tile.a_step = a_col * static_cast<int64_t>(sizeof(A)) * kGroup;
        tile.c_row = c_row;
        tile.add = accumulate || block.first > 0;
        for (int64_t j = 0; j < block.columns; j += kTileColumns) {
            tile.columns = smaller(kTileColumns, block.columns - j);
            const int64_t width = up(tile.columns, kLanes);
            if (in_place(tile.columns, direct)) {
                tile.b = reinterpret_cast<const char*>(b + block.first * b_row + block.column + j);
                tile.b_step = b_row * 4;
            } else {
                tile.b = reinterpret_cast<const char*>(b_packed);
                tile.b_step = width * 4;
            }
            b_packed += width * (block.words + kBias);
            for (int64_t i = 0, step; i < rows; i += step) {
                step = tile_rows(rows - i);
                if constexpr (kPacked) {
                    tile.a = reinterpret_cast<const char*>(a_packed + i * block.words);
                } else {
                    tile.a = reinterpret_cast<const char*>(a + (row + i) * a_row + block.first * a_col);
                }
                multiply<Policy, kPacked>(tile, step, c + (row + i) * c_row + block.column + j);
            }
        }
    }
};

// --- some rows: b streams by ------------------------------------------------------------------------------------------

// Up to kStreamedRows rows of a, by a b whose rows are contiguous, in long runs: packing it would take longer than it saves.
// Sums of some columns stay in the second cache meanwhile.
template <class Policy, class A, class B>
struct Streamed {
    static constexpr int kGroup = Policy::kGroup;
    static constexpr int kColumns = 2 * kLanes;
    typedef typename Policy::Sum Sum;

    float* c;
    int64_t c_row;
    const A* a;
    int64_t a_row, a_col;
    const B* b;
    int64_t b_row;
    int64_t m, n, k;
    bool accumulate;

    void run() const {
        const int64_t words = parts(k, kGroup);
        const int64_t width = smaller(up(n, kColumns), smaller(kSumsWidth, kSums / m / kColumns * kColumns));
        // One line more than they need: else rows would share few places of the first cache.
        const int64_t depth = up(words, kLanes) + kLanes, stride = width + kColumns;
        uint32_t* const left = static_cast<uint32_t*>(workspace(static_cast<size_t>(m * (depth + stride)) * 4));
        float* const sums = reinterpret_cast<float*>(left + m * depth);
        for (int64_t i = 0; i < m; ++i) take_row(left + i * depth, a + i * a_row, depth);
        for (int64_t j = 0; j < n; j += width) {
            const int64_t columns = smaller(width, n - j);
            for (int64_t at = 0; at < words; at += kWords) {
                for (int64_t i = 0; i < columns; i += kColumns) {
                    fetch((at + kWords) * kGroup, j + i);
                    U32 right[kWords][2];
                    take_columns(right, at * kGroup, j + i, columns - i);
                    if (at == 0) {
                        add<true>(sums + i, stride, left, depth, right);
                    } else {
                        add<false>(sums + i, stride, left + at, depth, right);
                    }
                }
            }
            for (int64_t i = 0; i < m; ++i) finish(c + i * c_row + j, sums + i * stride, columns);
        }
    }

   private:
    // Words along k at a time: twice as many registers; and rows of b, of which memory fetches few well ahead.
    static constexpr int kWords = kLanes == 16 && kGroup == 1 ? 8 : 4;
    static constexpr std::make_integer_sequence<int, kWords> each{};

    void take_row(uint32_t* to, const A* from, int64_t depth) const {
        const int64_t words = parts(k, kGroup);
        if (a_col == 1 && sizeof(A) * kGroup == 4) {
            to[words - 1] = 0;
            memcpy(to, from, static_cast<size_t>(k) * sizeof(A));
        } else {
            for (int64_t w = 0; w < words; ++w) {
                to[w] = word<Policy>(from + w * kGroup * a_col, a_col, k - w * kGroup);
            }
        }
        for (int64_t w = words; w < depth; ++w) to[w] = 0;
    }

    PTO_MM_INLINE void take_columns(U32 (&right)[kWords][2], int64_t first, int64_t column, int64_t count) const {
        const B* from = b + first * b_row + column;
        if (count >= kColumns && first + kWords * kGroup <= k) {
            unrolled(each, [&](auto w) __attribute__((always_inline)) {
                Policy::pair(right[w], from + w * kGroup * b_row, b_row);
            });
        } else {
            alignas(64) B copy[kWords * kGroup][kColumns] = {};
            const size_t bytes = static_cast<size_t>(smaller(count, kColumns)) * sizeof(B);
            for (int64_t r = 0; r < kWords * kGroup && first + r < k; ++r) memcpy(copy[r], from + r * b_row, bytes);
            unrolled(each, [&](auto w) __attribute__((always_inline)) {
                Policy::pair(right[w], copy[w * kGroup], kColumns);
            });
        }
    }

    // Asks for the rows that are multiplied next.
    PTO_MM_INLINE void fetch(int64_t first, int64_t column) const {
        const B* from = b + first * b_row + column;
        for (int64_t r = 0; r < kWords * kGroup; ++r, from += b_row) {
            for (int64_t i = 0; i < kColumns; i += 64 / static_cast<int64_t>(sizeof(B))) __builtin_prefetch(from + i, 0, 2);
        }
    }

    template <bool kFirst>
    PTO_MM_INLINE void add(float* to, int64_t stride, const uint32_t* left, int64_t depth,
                           const U32 (&right)[kWords][2]) const {
        for (int64_t i = 0; i < m; ++i, to += stride, left += depth) {
            Sum low{}, high{};
            if constexpr (!kFirst) low = load<Sum>(to), high = load<Sum>(to + kLanes);
            unrolled(each, [&](auto w) __attribute__((always_inline)) {
                low = Policy::step(low, left[w], right[w][0]);
                high = Policy::step(high, left[w], right[w][1]);
            });
            store(to, low);
            store(to + kLanes, high);
        }
    }

    void finish(float* to, const float* from, int64_t columns) const {
        for (int64_t i = 0; i < columns; i += kColumns) {
            Sum sums[2] = {load<Sum>(from + i), load<Sum>(from + i + kLanes)};
            Policy::order(sums);
            for (int half = 0; half < 2; ++half) {
                const int64_t at = i + half * kLanes, count = columns - at;
                if (count <= 0) break;
                if (accumulate) sums[half] += load_some<Sum>(to + at, count);
                store_some(to + at, sums[half], count);
            }
        }
    }
};

// --- few rows -------------------------------------------------------------------------------------------------------

// Up to kThin rows of a, by a b of which each element is read once. `Number`: float, or int32_t for integers.
template <class Number, class A, class B>
struct Thin {
    static constexpr bool kInts = std::is_same_v<Number, int32_t>;
    typedef std::conditional_t<kInts, I32, F32> Vector;

    Number* c;
    int64_t c_row;
    const A* a;
    int64_t a_row, a_col;
    const B* b;
    int64_t b_row, b_col;
    int64_t m, n, k;
    bool accumulate;

    // `left`: as many numbers as left_size says.
    void run(Number* left) const {
        const int64_t depth = left_depth(k);
        for (int64_t i = 0; i < m; ++i) {
            Number* to = left + i * depth;
            int64_t at = 0;
            if (a_col == 1) {
                for (; at < k; at += kLanes) store(to + at, numbers(a + i * a_row + at, k - at));
            } else {
                for (; at < k; ++at) to[at] = number(a[i * a_row + at * a_col]);
            }
            for (; at < depth; ++at) to[at] = 0;
        }
        if (b_row == 1 && (b_col != 1 || n == 1)) {
            by_columns(left, depth);
        } else if (m == 1) {
            by_rows<true>(left, depth);
        } else {
            by_rows<false>(left, depth);
        }
    }

    static int64_t left_depth(int64_t k) { return up(k, kLanes); }
    static int64_t left_size(int64_t m, int64_t k) { return up(m * left_depth(k), 16); }

   private:
    template <class T>
    static PTO_MM_INLINE Vector numbers(const T* from, int64_t count) {
        if constexpr (kInts) {
            return load_ints(from, count);
        } else {
            return load_floats(from, count);
        }
    }
    template <class T>
    static PTO_MM_INLINE Number number(T value) {
        if constexpr (kInts) {
            return value;
        } else {
            return to_float(value);
        }
    }

    // Some rows of b at a time are added to rows of c, which stay in a cache.
    template <bool kOne>
    void by_rows(const Number* left, int64_t depth) const {
        const int64_t width = kOne ? 4096 : 2048;  // shorter runs of b leave the memory idle
        for (int64_t begin = 0; begin < n; begin += width) {
            const int64_t end = smaller(begin + width, n);
            int64_t at = 0;
            for (; at + kStep <= k; at += kStep) some_rows<kStep, kOne>(left + at, depth, at, begin, end);
            for (; at < k; ++at) some_rows<1, kOne>(left + at, depth, at, begin, end);
        }
    }

    template <int kSome, bool kOne>
    PTO_MM_INLINE void some_rows(const Number* left, int64_t depth, int64_t at, int64_t begin, int64_t end) const {
        constexpr std::make_integer_sequence<int, kSome> some{};
        const bool add = accumulate || at > 0;
        Number first[kSome];  // a copy: c could be the same memory, for what the compiler knows
        memcpy(first, left, sizeof first);
        for (int64_t j = begin; j < end; j += kLanes) {
            Vector right[kSome];
            unrolled(some, [&](auto s) __attribute__((always_inline)) {
                right[s] = numbers(b + (at + s) * b_row + j, n - j);
            });
            Number* to = c + j;
            if constexpr (kOne) {
                Vector sum{};
                if (add) sum = load_some<Vector>(to, n - j);
                unrolled(some, [&](auto s) __attribute__((always_inline)) { sum = multiply_add(sum, first[s], right[s]); });
                store_some(to, sum, n - j);
            } else {
                const Number* row = left;
                for (int64_t i = 0; i < m; ++i, row += depth, to += c_row) {
                    Vector sum{};
                    if (add) sum = load_some<Vector>(to, n - j);
                    unrolled(some,
                             [&](auto s) __attribute__((always_inline)) { sum = multiply_add(sum, row[s], right[s]); });
                    store_some(to, sum, n - j);
                }
            }
        }
    }

    // The columns of b are contiguous: dot products, of four columns at a time.
    void by_columns(const Number* left, int64_t depth) const {
        int64_t j = 0;
        for (; j + 4 <= n; j += 4) some_columns<4>(left, depth, j);
        for (; j < n; ++j) some_columns<1>(left, depth, j);
    }

    template <int kSome>
    void some_columns(const Number* left, int64_t depth, int64_t j) const {
        int64_t i = 0;
        for (; i + 4 <= m; i += 4) dots<4, kSome>(left + i * depth, depth, i, j);
        if (m - i >= 2) dots<2, kSome>(left + i * depth, depth, i, j), i += 2;
        if (m - i >= 1) dots<1, kSome>(left + i * depth, depth, i, j);
    }

    template <int kRows, int kSome>
    void dots(const Number* left, int64_t depth, int64_t i, int64_t j) const {
        constexpr std::make_integer_sequence<int, kRows> rows{};
        constexpr std::make_integer_sequence<int, kSome> some{};
        Vector sums[kRows][kSome] = {};
        for (int64_t at = 0; at < k; at += kLanes) {
            Vector right[kSome];
            unrolled(some, [&](auto s) __attribute__((always_inline)) {
                right[s] = numbers(b + (j + s) * b_col + at, k - at);
            });
            unrolled(rows, [&](auto r) __attribute__((always_inline)) {
                const Vector each = load<Vector>(left + r * depth + at);
                unrolled(some, [&](auto s) __attribute__((always_inline)) {
                    sums[r][s] = multiply_add(sums[r][s], each, right[s]);
                });
            });
        }
        unrolled(rows, [&](auto r) __attribute__((always_inline)) {
            Number* to = c + (i + r) * c_row + j;
            unrolled(some, [&](auto s) __attribute__((always_inline)) {
                const Number sum = sum_of(sums[r][s]);
                to[s] = accumulate ? plus(to[s], sum) : sum;
            });
        });
    }

    static PTO_MM_INLINE Number sum_of(Vector v) {
        if constexpr (kInts) {
            return static_cast<int32_t>(total<uint32_t>((U32)v));
        } else {
            return total<float>(v);
        }
    }
    static PTO_MM_INLINE Number plus(Number x, Number y) {
        if constexpr (kInts) {
            return static_cast<int32_t>(static_cast<uint32_t>(x) + static_cast<uint32_t>(y));
        } else {
            return x + y;
        }
    }
};

}  // namespace mm

// c (m x n, its rows contiguous) = a (m x k) b (k x n), or c += where `accumulate`. Strides are in elements; c overlaps
// neither operand. Sums are made in C, which is float, or int32_t (modulo 2^32) for int8_t by int8_t.
template <class A, class B, class C>
void matmul(C* c, int64_t c_row, const A* a, int64_t a_row, int64_t a_col, const B* b, int64_t b_row, int64_t b_col,
            int64_t m, int64_t n, int64_t k, bool accumulate) {
    static_assert(std::is_same_v<C, std::conditional_t<mm::kIntegers<A, B>, int32_t, float>>);
    if (m <= 0 || n <= 0) return;
    if (k <= 0) {
        for (int64_t i = 0; i < m && !accumulate; ++i) memset(c + i * c_row, 0, static_cast<size_t>(n) * sizeof(C));
        return;
    }
    // Strides that nothing is multiplied by.
    if (n == 1) b_col = 1;
    if (m == 1) a_row = 1;
    if constexpr (!mm::kIntegers<A, B>) {
        if (m <= mm::kStreamedRows && b_col == 1 && n * k >= mm::kStreamedSize) {
            typedef typename mm::PolicyOf<A, B>::type Policy;
            return mm::Streamed<Policy, A, B>{c, c_row, a, a_row, a_col, b, b_row, m, n, k, accumulate}.run();
        }
    }
    if (m <= mm::kThin && (b_col == 1 || b_row == 1)) {
        const mm::Thin<C, A, B> thin{c, c_row, a, a_row, a_col, b, b_row, b_col, m, n, k, accumulate};
        thin.run(static_cast<C*>(mm::workspace(static_cast<size_t>(thin.left_size(m, k)) * sizeof(C))));
    } else if (n <= mm::kThin && (a_row == 1 || a_col == 1)) {
        // The transposed product, into memory of its own.
        const int64_t left = mm::Thin<C, B, A>::left_size(n, k);
        C* const memory = static_cast<C*>(mm::workspace(static_cast<size_t>(left + m * n) * sizeof(C)));
        C* const made = memory + left;
        const mm::Thin<C, B, A> thin{made, m, b, b_col, b_row, a, a_col, a_row, n, m, k, false};
        thin.run(memory);
        for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
                C& to = c[i * c_row + j];
                to = accumulate ? to + made[j * m + i] : made[j * m + i];
            }
        }
    } else {
        mm::Blocked<typename mm::PolicyOf<A, B>::type, A, B>{c, c_row, a, a_row, a_col, b, b_row, b_col, m, n, k,
                                                             accumulate}
            .run();
    }
}

}  // namespace pto
