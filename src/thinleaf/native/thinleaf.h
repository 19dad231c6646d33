/* thinleaf.h: predicts with .thinleaf model files. One C99 header (also C++), no dependency.
 *
 *     tl_model model;
 *     size_t need = tl_memory_size(data, size);            // what the model keeps: 0 is an error
 *     int status = tl_open(&model, data, size, malloc(need), need);
 *     if (status == TL_OK) status = tl_check(&model);      // every leaf: predictions are faster then
 *     size_t room = tl_scratch_size(&model, TL_TEXT, 4096);
 *     void *scratch = malloc(room);                        // one for each thread
 *     int32_t id = tl_predict(&model, tl_text("a broken arm", 12), scratch, room);
 *     if (id >= 0) ... tl_label_text(&model, id, &length) ...
 *
 * `data` is the file, mapped, read or compiled in; it must stay as it is while the model is used, and
 * may begin at any address. Nothing is allocated, nothing is global, and after tl_open a model is only
 * read: threads share it, each with a scratch of its own. Of libc there is memcpy, and sqrt.
 *
 * A file that is damaged or hostile is an error code, never a crash and never a read outside of it:
 * tl_open checks what Python's thinleaf.load does, tl_check also the insides of all leaves. Without
 * tl_check, each prediction checks the leaves that it reaches.
 *
 * Options, to be defined before the header is included:
 *   TL_ASCII_ONLY      no tables of Unicode (8 kB): texts beyond ASCII are refused (TL_BAD_UTF8)
 *   TL_PORTABLE_LOADS  read numbers byte by byte, as on big-endian machines, everywhere
 *   TL_API             empty: the functions are not static, as for a library for other languages
 *   TL_FREESTANDING    no <string.h>, no <math.h>: somebody else defines memcpy
 *
 * Results are those of the Python library: labels are the same and probabilities agree to 1e-6, if
 * the compiler does not fuse or reorder floating-point operations (gcc: -std=c99 or
 * -ffp-contract=off; not -ffast-math). The format of files is described in docs/format.md.
 */
#ifndef THINLEAF_H
#define THINLEAF_H

#include <stddef.h>
#include <stdint.h>

#ifdef TL_FREESTANDING
#ifdef __cplusplus
extern "C" void *memcpy(void *, const void *, size_t);
#else
void *memcpy(void *, const void *, size_t);
#endif
#define TL_SQRT __builtin_sqrt
#else
#include <math.h>
#include <string.h>
#define TL_SQRT sqrt
#endif

#ifdef __GNUC__ /* a load, also where the compiler is told that there is no libc */
#define TL_COPY __builtin_memcpy
#else
#define TL_COPY memcpy
#endif

#ifdef __cplusplus
#define TL_RESTRICT
#else
#define TL_RESTRICT restrict
#endif

#ifndef TL_API
#define TL_API static inline
#endif

#ifdef __GNUC__
#define TL_ONCE static __attribute__((noinline, unused)) /* large, and called from many places */
#define TL_SMALL static inline __attribute__((always_inline))
#ifdef __clang__
#define TL_COLD static __attribute__((noinline, unused, minsize)) /* opens files: small, not quick */
#else
#define TL_COLD static __attribute__((noinline, unused, cold))
#endif
#else
#define TL_ONCE static inline
#define TL_COLD static inline
#define TL_SMALL static inline
#endif

#if defined(__GNUC__) && !defined(__OPTIMIZE_SIZE__) /* what is needed soon is brought near */
#define TL_FETCH(p) __builtin_prefetch(p)
#else
#define TL_FETCH(p) ((void)(p))
#endif

#ifdef __OPTIMIZE_SIZE__ /* once for all sizes of items; else once for each */
#define TL_QUICK static inline
#else
#define TL_QUICK TL_SMALL
#endif

/* -- what users see ------------------------------------------------------------------------------ */

enum {
    TL_OK = 0,
    TL_BAD_FILE = -1,     /* no model file, or a damaged one: the container */
    TL_BAD_JSON = -2,     /* the header or the metadata are no strict JSON, or lack something */
    TL_BAD_VERSION = -3,  /* a format or a version that this header does not know */
    TL_BAD_MODEL = -4,    /* arrays that are no model */
    TL_BAD_LEAF = -5,     /* a leaf holds ids or weights out of range */
    TL_BAD_LABELS = -6,   /* labels or names are damaged */
    TL_BAD_TEXT = -7,     /* what the file says of texts is damaged */
    TL_NO_MEMORY = -8,    /* the memory is smaller than tl_memory_size says */
    TL_NO_SCRATCH = -9,   /* the scratch is smaller than tl_scratch_size says */
    TL_WRONG_WIDTH = -10, /* a dense row has another number of features than the model */
    TL_BAD_FEATURE = -11, /* an index is not the number of a feature */
    TL_BAD_UTF8 = -12,    /* a text is not UTF-8 */
    TL_NO_TEXTS = -13,    /* the model takes rows, or texts in a way that only Python knows */
    TL_BAD_ARGUMENT = -14 /* k, a tree, a class or a kind of input that there is not */
};

enum { TL_DENSE = 1, TL_PAIRS = 2, TL_TEXT = 4 }; /* kinds of input */
enum { TL_LABEL_INT, TL_LABEL_FLOAT, TL_LABEL_BOOL, TL_LABEL_TEXT };
enum { TL_TREE, TL_LABEL_TREE };
enum { TL_FLOAT32, TL_FLOAT16, TL_INT8 };

typedef struct tl_array {
    const uint8_t *at; /* little-endian, at any address */
    int64_t n;         /* items */
} tl_array;

/* Arrays of softmax trees; W is the type of leaf weights. Five may be narrow: see tl_own_narrow. */
#define TL_TREE_ARRAYS(X)                                                                        \
    X(child, I32) X(bias, F32) X(dense_at, I32) X(dense_val, F32) X(router_ptr, I64)             \
    X(router_idx, I32) X(router_val, F32) X(class_ptr, I64) X(class_ids, I32) X(leaf_bias, F32)  \
    X(scale, F32) X(feat_ptr, I64) X(feat_idx, I32) X(block_ptr, I64) X(block, W)                \
    X(row_ptr, I64) X(slot, U16) X(entry, W) X(inside, F64) X(outside, F64) X(prior, F64)        \
    X(rank, I32) X(extra_ptr, I64) X(extra_ids, I32) X(extra, F64)

typedef struct tl_model {
    int kind;       /* TL_TREE or TL_LABEL_TREE */
    int weights;    /* type of leaf weights: TL_FLOAT32, TL_FLOAT16, TL_INT8 */
    int sparse;     /* laid out for sparse rows */
    int beam;       /* paths of a row in each tree */
    int label_kind; /* TL_LABEL_INT, ... */
    int fixed_width; /* zeros at the end of labels do not count, as in NumPy's arrays of strings */
    int checked;    /* by tl_check: leaves need no check any more */
    int text;       /* TL_OK if texts can be read; else why not: TL_NO_TEXTS, TL_BAD_TEXT, ... */
    int depth;      /* of the deepest leaf */
    int64_t n_features, n_classes, n_trees, n_nodes, n_leaves;
    double sharpness; /* one over the temperature */
#define TL_MEMBER(name, type) tl_array name;
    TL_TREE_ARRAYS(TL_MEMBER)
#undef TL_MEMBER
    tl_array segment_ptr, row_base; /* of narrow features and rows */
    int node_size, slot_size;       /* bytes of an item of router_idx, of slot */
    int router_weights;             /* type of router_val: TL_FLOAT32, TL_FLOAT16 */
    int narrow_rows;                /* row_ptr counts from row_base */
    int64_t n_segments;             /* of narrow features in each leaf; 0 if feat_idx is wide */
    tl_array labels, label_ptr;
    int64_t max_classes, max_extra; /* of a leaf */
    /* texts */
    int hashing, has_signs, word_low, word_high, char_low, char_high, mean;
    int64_t n_buckets, n_word_terms;
    tl_array terms, term_ptr, idf, words;
    uint64_t *slots;
    int64_t n_slots;
    /* label trees */
    int64_t arity, n_outputs, dim;
    int greedy;
    float row_scale;
    tl_array children, node_weights, node_bias, U;
} tl_model;

typedef struct tl_input {
    int kind;
    const void *at;
    const float *values;
    size_t n;
} tl_input;

/* A dense row; a row of index and value pairs, in any order; a text in UTF-8. */
TL_API tl_input tl_dense(const float *x, size_t n)
{
    tl_input in = {TL_DENSE, x, 0, n};
    return in;
}

TL_API tl_input tl_pairs(const int32_t *indices, const float *values, size_t n)
{
    tl_input in = {TL_PAIRS, indices, values, n};
    return in;
}

TL_API tl_input tl_text(const char *utf8, size_t n_bytes)
{
    tl_input in = {TL_TEXT, utf8, 0, n_bytes};
    return in;
}

typedef struct tl_step {
    int32_t node;   /* of the path, from the root on */
    int32_t branch; /* which child comes next: of a softmax tree 0 is left, 1 is right */
    float score;    /* w.x + b of a router, positive to the right; of a label tree log p(branch) */
} tl_step;

/* Bytes that the model of a file keeps; 0 if it is no model file. */
TL_API size_t tl_memory_size(const void *data, size_t size);
/* Open a file. With memory NULL, checks that need memory are left out and terms of texts cannot be
 * looked up: for files that are part of the program. Label trees need memory. */
TL_API int tl_open(tl_model *m, const void *data, size_t size, void *memory, size_t memory_size);
/* Check the insides of all leaves. What the file says of texts is checked when it is opened, and does
 * not matter to rows: see model.text. */
TL_API int tl_check(tl_model *m);
/* Bytes of scratch for some kinds of input (TL_DENSE | TL_PAIRS | TL_TEXT), texts up to a length. */
TL_API size_t tl_scratch_size(const tl_model *m, int kinds, size_t text_bytes);
/* The class of an input, or an error. */
TL_API int32_t tl_predict(const tl_model *m, tl_input in, void *scratch, size_t scratch_size);
/* Fill in the k most probable classes, best first, and their probabilities. */
TL_API int tl_predict_topk(const tl_model *m, tl_input in, int32_t k, int32_t *ids, double *p,
                           void *scratch, size_t scratch_size);
/* Fill in the probability of every class. */
TL_API int tl_predict_proba(const tl_model *m, tl_input in, double *p, void *scratch, size_t scratch_size);
/* Fill in the classes that the leaves of an input hold and their probabilities, in no order; return how
 * many, or an error. There are never more than tl_most_held says. */
TL_API int64_t tl_predict_held(const tl_model *m, tl_input in, int32_t *ids, double *p, int64_t max,
                               void *scratch, size_t scratch_size);
TL_API int64_t tl_most_held(const tl_model *m);
/* The probability of one class of a softmax tree; if it is not smooth, as if no class had any outside
 * the leaves of the input. */
TL_API int tl_proba_of(const tl_model *m, tl_input in, int32_t id, int smooth, double *p, void *scratch,
                       size_t scratch_size);
/* How many terms a text has, and how many of them are features: a foreign text has few. For softmax trees
 * whose terms are not hashed. */
TL_API int tl_known_terms(const tl_model *m, tl_input in, double *n_known, double *n_terms,
                          void *scratch, size_t scratch_size);
/* Fill in the steps that an input takes in one tree, at most model.depth of them, and return how many;
 * or an error. `end` becomes the number of the leaf; of a label tree, the class. */
TL_API int32_t tl_explain_path(const tl_model *m, tl_input in, int32_t tree, tl_step *steps,
                               int32_t max_steps, int32_t *end, void *scratch, size_t scratch_size);
/* The row of a text: fill in indices and values, at most `max`, and return how many; or an error. */
TL_API int64_t tl_row_of_text(const tl_model *m, tl_input in, int32_t *indices, float *values,
                              int64_t max, void *scratch, size_t scratch_size);
/* Labels of classes, by model.label_kind. */
TL_API const char *tl_label_text(const tl_model *m, int32_t id, size_t *length);
TL_API int64_t tl_label_int(const tl_model *m, int32_t id);
TL_API double tl_label_float(const tl_model *m, int32_t id);
/* What a status means. */
TL_API const char *tl_error(int status);
/* Bytes of a tl_model, for languages that do not read this header. */
TL_API size_t tl_model_size(void);

/* -- numbers ------------------------------------------------------------------------------------- */

#if defined(TL_PORTABLE_LOADS) || \
    !(defined(_MSC_VER) || (defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__))
TL_SMALL uint16_t tl_u16(const uint8_t *p) { return (uint16_t)(p[0] | (p[1] << 8)); }
TL_SMALL uint32_t tl_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | ((uint32_t)p[1] << 8) | ((uint32_t)p[2] << 16) | ((uint32_t)p[3] << 24);
}
static inline uint64_t tl_u64(const uint8_t *p)
{
    return (uint64_t)tl_u32(p) | ((uint64_t)tl_u32(p + 4) << 32);
}
#else
TL_SMALL uint16_t tl_u16(const uint8_t *p)
{
    uint16_t v;
    TL_COPY(&v, p, 2);
    return v;
}
TL_SMALL uint32_t tl_u32(const uint8_t *p)
{
    uint32_t v;
    TL_COPY(&v, p, 4);
    return v;
}
static inline uint64_t tl_u64(const uint8_t *p)
{
    uint64_t v;
    TL_COPY(&v, p, 8);
    return v;
}
#endif

TL_SMALL float tl_float_of(uint32_t bits)
{
    float v;
    TL_COPY(&v, &bits, 4);
    return v;
}

TL_SMALL uint32_t tl_bits_of(float v)
{
    uint32_t bits;
    TL_COPY(&bits, &v, 4);
    return bits;
}

static inline double tl_double_of(uint64_t bits)
{
    double v;
    TL_COPY(&v, &bits, 8);
    return v;
}

TL_SMALL float tl_f32(const uint8_t *p) { return tl_float_of(tl_u32(p)); }
static inline double tl_f64(const uint8_t *p) { return tl_double_of(tl_u64(p)); }
TL_SMALL int32_t tl_i32(const uint8_t *p) { return (int32_t)tl_u32(p); }
static inline int64_t tl_i64(const uint8_t *p) { return (int64_t)tl_u64(p); }

/* Item i of an array of a type. */
TL_SMALL int32_t tl_int(tl_array a, int64_t i) { return tl_i32(a.at + 4 * i); }
static inline int64_t tl_offset(tl_array a, int64_t i) { return tl_i64(a.at + 8 * i); }
TL_SMALL float tl_number(tl_array a, int64_t i) { return tl_f32(a.at + 4 * i); }
static inline double tl_long_number(tl_array a, int64_t i) { return tl_f64(a.at + 8 * i); }

/* Item i of an array of ids: int32, or two bytes without a sign. */
TL_SMALL int32_t tl_id(tl_array a, int64_t i, int size)
{
    return size == 4 ? tl_int(a, i) : (int32_t)tl_u16(a.at + 2 * i);
}

static inline float tl_half(uint16_t h)
{
    /* the exponent moves to its new place, and is corrected by a product: subnormal ones, too */
    float v = tl_float_of((uint32_t)(h & 0x7FFF) << 13) * 0x1p112f;
    return tl_float_of(tl_bits_of(v) | ((uint32_t)(h & 0x8000) << 16));
}

static inline int tl_finite32(float v) { return (tl_bits_of(v) & 0x7F800000u) != 0x7F800000u; }

static inline int tl_finite64(double v) { return v - v == 0.0; }

/* e^x to about an ulp. */
TL_ONCE double tl_exp(double x)
{
    double n, r, p = 1.0 / 6227020800.0;
    int64_t k;
    if (!(x == x)) return x;
    if (x < -708.0) return 0.0;
    if (x > 709.0) return tl_double_of(0x7FF0000000000000u);
    k = (int64_t)(x * 1.4426950408889634 + (x < 0.0 ? -0.5 : 0.5));
    n = (double)k;
    r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return p * tl_double_of((uint64_t)(k + 1023) << 52);
}

#ifndef __OPTIMIZE_SIZE__
/* e^x of numbers from -700 to zero: without a branch, so that compilers vectorise loops. NaN stays. */
TL_SMALL double tl_exp_below(double x)
{
    double n, r, p = 1.0 / 39916800.0;
    uint64_t bits;
    n = x * 1.4426950408889634 + 6755399441055744.0; /* its last bits are the nearest integer */
    TL_COPY(&bits, &n, 8);
    n -= 6755399441055744.0;
    r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return p * tl_double_of((bits + 1023) << 52);
}

/* The same in float, where that is enough, of any numbers up to zero. */
TL_SMALL float tl_exp32_below(float x)
{
    float n, r, p = 1.9875691500e-4f;
    uint32_t bits, keep = (uint32_t)(x < -87.0f) - 1;
    x = tl_float_of((tl_bits_of(x) & keep) | (0xC2AE0000u & ~keep)); /* -87 */
    n = x * 1.4426950408889634f + 12582912.0f;
    TL_COPY(&bits, &n, 4);
    n -= 12582912.0f;
    r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * tl_float_of((bits + 127) << 23);
}
#endif

/* e^(x[c] - top), where no x is above top. */
static inline void tl_exps(const float *TL_RESTRICT x, double top, double *TL_RESTRICT out, int64_t k)
{
    int64_t c;
#ifdef __OPTIMIZE_SIZE__
    for (c = 0; c < k; c++) out[c] = tl_exp((double)x[c] - top);
#else
    for (c = 0; c < k; c++) out[c] = (double)x[c] - top < -700.0 ? -700.0 : (double)x[c] - top;
    for (c = 0; c < k; c++) out[c] = tl_exp_below(out[c]);
#endif
}

/* 2 artanh(z) = log((1 + z) / (1 - z)) for |z| up to 1/3. */
TL_ONCE double tl_twice_artanh(double z)
{
    double q = z * z, p = 1.0 / 35.0;
    int i;
    for (i = 33; i > 0; i -= 2) p = p * q + 1.0 / i;
    return 2.0 * z * p;
}

/* log(1 + e) for e in 0..1. */
static inline double tl_log1p(double e) { return tl_twice_artanh(e / (2.0 + e)); }

#ifndef __OPTIMIZE_SIZE__
/* Replace some numbers by log(1 + e^-|x|). NaN stays. */
static inline void tl_soften(double *x, int n)
{
    int i;
    for (i = 0; i < n; i++) x[i] = x[i] > 700.0 || x[i] < -700.0 ? -700.0 : x[i] < 0.0 ? x[i] : -x[i];
    for (i = 0; i < n; i++) { /* vectorised: the series of tl_twice_artanh, as far as it matters */
        double e = tl_exp_below(x[i]), z = e / (2.0 + e), q = z * z, p = 1.0 / 31.0;
        int j;
        for (j = 29; j > 0; j -= 2) p = p * q + 1.0 / j;
        x[i] = 2.0 * z * p;
    }
}
#endif

/* Logarithm of a positive normal number. */
TL_ONCE double tl_log(double x)
{
    uint64_t bits;
    int64_t e;
    double m;
    TL_COPY(&bits, &x, 8);
    e = (int64_t)(bits >> 52) - 1023;
    m = tl_double_of((bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        e += 1;
    }
    return (double)e * 6.93147180369123816490e-01 +
           ((double)e * 1.90821492927058770002e-10 + tl_twice_artanh((m - 1.0) / (m + 1.0)));
}

/* e^x in float, as Python's models compute it where float is enough. */
static inline float tl_exp32(float x)
{
    float n, r, p = 1.9875691500e-4f;
    int32_t k;
    if (!(x > -87.0f)) x = -87.0f;
    if (x > 88.0f) x = 88.0f;
    n = x * 1.4426950408889634f + 0.5f;
    k = (int32_t)n;
    if ((float)k > n) k -= 1;
    n = (float)k;
    r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * tl_float_of((uint32_t)(k + 127) << 23);
}

/* Sort in place. */
TL_COLD void tl_sift(uint64_t *a, size_t at, size_t n)
{
    uint64_t v = a[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n) break;
        if (child + 1 < n && a[child + 1] > a[child]) child += 1;
        if (a[child] <= v) break;
        a[at] = a[child];
        at = child;
    }
    a[at] = v;
}

TL_COLD void tl_sort(uint64_t *a, size_t n)
{
    size_t i;
    for (i = n / 2; i-- > 0;) tl_sift(a, i, n);
    for (i = n; i-- > 1;) {
        uint64_t v = a[0];
        a[0] = a[i];
        a[i] = v;
        tl_sift(a, 0, i);
    }
}

static inline int64_t tl_power_of_two(int64_t least)
{
    int64_t size = 1;
    while (size < least) size *= 2;
    return size;
}

/* Memory that a caller has given, from which parts are taken. */
typedef struct tl_room {
    uint8_t *at;
    size_t left;
} tl_room;

static inline tl_room tl_room_in(void *memory, size_t size)
{
    size_t skip = (size_t)(-(uintptr_t)memory & 7);
    tl_room room = {0, 0};
    if (memory != NULL && size > skip) {
        room.at = (uint8_t *)memory + skip;
        room.left = size - skip;
    }
    return room;
}

#define TL_ROUNDED(bytes) (((size_t)(bytes) + 7) & ~(size_t)7)

TL_ONCE void *tl_take(tl_room *room, uint64_t n, size_t size)
{
    void *at = room->at;
    if (n > SIZE_MAX / 2 / size || TL_ROUNDED(n * size) > room->left || at == NULL) return NULL;
    room->at += TL_ROUNDED(n * size);
    room->left -= TL_ROUNDED(n * size);
    return at;
}

/* -- UTF-8 --------------------------------------------------------------------------------------- */

/* The bytes of the character at p, of at most n, and its code point; 0 if it is none. Halves of a
 * surrogate pair are characters here, as in strings of Python. */
TL_ONCE int tl_decode(const uint8_t *p, size_t n, uint32_t *code)
{
    uint32_t c = p[0];
    if (c < 0x80) {
        *code = c;
        return 1;
    }
    if (c < 0xC2) return 0;
    if (c < 0xE0) {
        if (n < 2 || (p[1] & 0xC0) != 0x80) return 0;
        *code = ((c & 0x1F) << 6) | (p[1] & 0x3Fu);
        return 2;
    }
    if (c < 0xF0) {
        if (n < 3 || (p[1] & 0xC0) != 0x80 || (p[2] & 0xC0) != 0x80) return 0;
        *code = ((c & 0x0F) << 12) | ((p[1] & 0x3Fu) << 6) | (p[2] & 0x3Fu);
        return *code < 0x800 ? 0 : 3;
    }
    if (c > 0xF4 || n < 4) return 0;
    if ((p[1] & 0xC0) != 0x80 || (p[2] & 0xC0) != 0x80 || (p[3] & 0xC0) != 0x80) return 0;
    *code = ((c & 0x07) << 18) | ((p[1] & 0x3Fu) << 12) | ((p[2] & 0x3Fu) << 6) | (p[3] & 0x3Fu);
    return *code < 0x10000 || *code > 0x10FFFF ? 0 : 4;
}

TL_ONCE int tl_encode(uint32_t code, uint8_t *out)
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xC0 | (code >> 6));
        out[1] = (uint8_t)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xE0 | (code >> 12));
        out[1] = (uint8_t)(0x80 | ((code >> 6) & 0x3F));
        out[2] = (uint8_t)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | (code >> 18));
    out[1] = (uint8_t)(0x80 | ((code >> 12) & 0x3F));
    out[2] = (uint8_t)(0x80 | ((code >> 6) & 0x3F));
    out[3] = (uint8_t)(0x80 | (code & 0x3F));
    return 4;
}

TL_COLD int tl_is_utf8(const uint8_t *p, size_t n)
{
    size_t at = 0;
    while (at < n) {
        uint32_t code;
        int width = tl_decode(p + at, n - at, &code);
        if (width == 0 || (code >= 0xD800 && code < 0xE000)) return 0;
        at += (size_t)width;
    }
    return 1;
}

/* -- JSON ---------------------------------------------------------------------------------------- */

/* Characters of a text, or of a JSON string within one, without its escapes. A copy is a bookmark. */
typedef struct tl_chars {
    const uint8_t *p, *end;
    uint8_t more[4];
    int8_t at, n_more, escaped;
} tl_chars;

TL_COLD int tl_unescape(tl_chars *c, uint8_t *out);

TL_COLD int tl_next(tl_chars *c)
{
    tl_chars raw;
    int n;
    if (c->at < c->n_more) return c->more[c->at++];
    if (c->p >= c->end) return -1;
    if (!c->escaped) return *c->p++;
    if (*c->p == '"') return -1;
    if (*c->p != '\\') return *c->p++;
    raw = *c;
    raw.escaped = raw.at = raw.n_more = 0;
    raw.p += 1;
    n = tl_unescape(&raw, c->more);
    if (n <= 0) return -1;
    c->p = raw.p;
    c->n_more = (int8_t)n;
    c->at = 1;
    return c->more[0];
}

TL_COLD int32_t tl_hex4(tl_chars *c)
{
    int32_t code = 0;
    int i;
    for (i = 0; i < 4; i++) {
        int d = tl_next(c);
        if (d >= '0' && d <= '9') d -= '0';
        else if (d >= 'a' && d <= 'f') d -= 'a' - 10;
        else if (d >= 'A' && d <= 'F') d -= 'A' - 10;
        else return -1;
        code = code * 16 + d;
    }
    return code;
}

/* What stands after a backslash, as UTF-8; returns the number of bytes, or -1. */
TL_COLD int tl_unescape(tl_chars *c, uint8_t *out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    int e = tl_next(c), i;
    int32_t code;
    for (i = 0; i < 8; i++) {
        if (e == names[i]) {
            out[0] = (uint8_t)values[i];
            return 1;
        }
    }
    if (e != 'u' || (code = tl_hex4(c)) < 0) return -1;
    if (code >= 0xD800 && code < 0xDC00) {
        tl_chars before = *c;
        int32_t low = -1;
        if (tl_next(c) == '\\' && tl_next(c) == 'u') low = tl_hex4(c);
        if (low >= 0xDC00 && low < 0xE000) code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        else *c = before;
    }
    return tl_encode((uint32_t)code, out);
}

typedef struct tl_json {
    tl_chars in;
    int c; /* the character that comes next, or -1 */
    uint64_t *keys; /* hashes of the keys of the objects that are open; NULL: keys are not compared */
    size_t n_keys, max_keys;
} tl_json;

enum { TL_JSON_BIG = 'I' }; /* an integer beyond 64 bits */

typedef struct tl_value {
    int type; /* one of { [ " i I f t n, or 0 */
    tl_json at;
    int64_t i;
    double f;
    int64_t n; /* items of an array or object */
} tl_value;

TL_COLD void tl_step_on(tl_json *j) { j->c = tl_next(&j->in); }

TL_COLD void tl_skip_blanks(tl_json *j)
{
    while (j->c == ' ' || j->c == '\t' || j->c == '\n' || j->c == '\r') tl_step_on(j);
}

TL_COLD tl_json tl_json_of(tl_chars in, uint64_t *keys, size_t max_keys)
{
    tl_json j;
    j.in = in;
    j.keys = keys;
    j.n_keys = 0;
    j.max_keys = max_keys;
    tl_step_on(&j);
    tl_skip_blanks(&j);
    return j;
}

/* Read a string into a buffer, as far as it fits; return its length in bytes, or -1. */
TL_COLD int64_t tl_json_string(tl_json *j, char *buffer, int64_t size, uint64_t *hash)
{
    uint64_t h = 0xCBF29CE484222325u;
    int64_t n = 0;
    if (j->c != '"') return -1;
    tl_step_on(j);
    while (j->c != '"') {
        uint8_t bytes[4];
        int width = 1, i;
        if (j->c < 0x20) return -1; /* also at the end */
        bytes[0] = (uint8_t)j->c;
        if (j->c == '\\') {
            width = tl_unescape(&j->in, bytes);
            if (width < 0) return -1;
        }
        for (i = 0; i < width; i++, n++) {
            h = (h ^ bytes[i]) * 0x100000001B3u;
            if (n < size) buffer[n] = (char)bytes[i];
        }
        tl_step_on(j);
    }
    tl_step_on(j);
    if (hash != NULL) *hash = h ^ (h >> 29) ^ ((uint64_t)n << 40);
    return n;
}

static inline double tl_power_of_ten(int64_t e)
{
    double power = 1.0, base = 10.0;
    for (; e > 0; e /= 2, base *= base)
        if (e % 2) power *= base;
    return power;
}

/* Take digits into a number as long as it fits; `shift` counts those that do not, or that do. */
TL_COLD int64_t tl_json_digits(tl_json *j, uint64_t *digits, int64_t *shift, int after)
{
    int64_t n = 0;
    for (; j->c >= '0' && j->c <= '9'; n++) {
        int fits = *digits < 1000000000000000000u;
        if (fits) *digits = *digits * 10 + (uint64_t)(j->c - '0');
        *shift += after ? -fits : !fits;
        tl_step_on(j);
    }
    return n;
}

TL_COLD double tl_scaled(double v, int64_t shift)
{
    if (v == 0.0) return v;
    for (; shift > 300; shift -= 300) {
        v *= 1e300;
        if (!tl_finite64(v)) return v;
    }
    for (; shift < -300; shift += 300) {
        v /= 1e300;
        if (v == 0.0) return v;
    }
    return shift < 0 ? v / tl_power_of_ten(-shift) : v * tl_power_of_ten(shift);
}

TL_COLD int tl_json_number(tl_json *j, tl_value *v)
{
    uint64_t digits = 0;
    int64_t n, shift = 0, e = 0;
    int negative = j->c == '-', negative_e, leading;
    if (negative) tl_step_on(j);
    leading = j->c;
    n = tl_json_digits(j, &digits, &shift, 0);
    if (n == 0 || (leading == '0' && n > 1)) return 0;
    v->type = shift > 0 || digits > (uint64_t)INT64_MAX ? (int)TL_JSON_BIG : 'i';
    if (j->c == '.') {
        v->type = 'f';
        tl_step_on(j);
        if (tl_json_digits(j, &digits, &shift, 1) == 0) return 0;
    }
    if (j->c == 'e' || j->c == 'E') {
        v->type = 'f';
        tl_step_on(j);
        negative_e = j->c == '-';
        if (j->c == '-' || j->c == '+') tl_step_on(j);
        for (n = 0; j->c >= '0' && j->c <= '9'; n++) {
            if (e < 1000000000) e = e * 10 + (j->c - '0');
            tl_step_on(j);
        }
        if (n == 0) return 0;
        shift += negative_e ? -e : e;
    }
    if (v->type == TL_JSON_BIG) return n <= 4300; /* as Python */
    if (v->type == 'i') {
        v->i = negative ? -(int64_t)digits : (int64_t)digits;
        return 1;
    }
    v->f = tl_scaled(negative ? -(double)digits : (double)digits, shift);
    return tl_finite64(v->f);
}

TL_COLD int tl_json_word(tl_json *j, const char *word)
{
    for (; *word; word++) {
        if (j->c != *word) return 0;
        tl_step_on(j);
    }
    return 1;
}

/* Go to the first, or to the next, key of an object: 1 if there is one, 0 at the end, -1 if that is
 * no JSON. Afterwards the value comes next. */
TL_COLD int tl_json_key(tl_json *j, int first, char *name, int64_t size, int64_t *length,
                              uint64_t *hash)
{
    tl_skip_blanks(j);
    if (j->c == '}' ) {
        tl_step_on(j);
        return 0;
    }
    if (!first) {
        if (j->c != ',') return -1;
        tl_step_on(j);
        tl_skip_blanks(j);
    }
    *length = tl_json_string(j, name, size, hash);
    if (*length < 0) return -1;
    tl_skip_blanks(j);
    if (j->c != ':') return -1;
    tl_step_on(j);
    tl_skip_blanks(j);
    return 1;
}

#define TL_MAX_LEVELS 64

/* Read any value, and go past it; 0 if it is no strict JSON. */
TL_COLD int tl_json_value(tl_json *j, int level, tl_value *v)
{
    tl_value item;
    int first = 1;
    if (level >= TL_MAX_LEVELS) return 0;
    v->at = *j;
    v->type = j->c;
    v->n = v->i = 0;
    v->f = 0.0;
    if (j->c == '"') return tl_json_string(j, NULL, 0, NULL) >= 0;
    if (j->c == '-' || (j->c >= '0' && j->c <= '9')) return tl_json_number(j, v);
    if (j->c == 't') {
        v->i = 1;
        return tl_json_word(j, "true");
    }
    if (j->c == 'f') {
        v->type = 't';
        return tl_json_word(j, "false");
    }
    if (j->c == 'n') return tl_json_word(j, "null");
    if (j->c == '{') {
        size_t own = j->n_keys, i;
        tl_step_on(j);
        for (;; first = 0, v->n++) {
            uint64_t hash;
            int64_t length;
            int found = tl_json_key(j, first, NULL, 0, &length, &hash);
            if (found < 0) return 0;
            if (found == 0) break;
            if (j->keys != NULL) {
                if (j->n_keys == j->max_keys) return 0;
                j->keys[j->n_keys++] = hash;
            }
            if (!tl_json_value(j, level + 1, &item)) return 0;
        }
        if (j->keys != NULL) {
            tl_sort(j->keys + own, j->n_keys - own);
            for (i = own + 1; i < j->n_keys; i++)
                if (j->keys[i] == j->keys[i - 1]) return 0;
            j->n_keys = own;
        }
        return 1;
    }
    if (j->c != '[') return 0;
    tl_step_on(j);
    tl_skip_blanks(j);
    for (; j->c != ']'; first = 0, v->n++) {
        if (!first) {
            if (j->c != ',') return 0;
            tl_step_on(j);
            tl_skip_blanks(j);
        }
        if (!tl_json_value(j, level + 1, &item)) return 0;
        tl_skip_blanks(j);
    }
    tl_step_on(j);
    return 1;
}

/* Read a whole text. */
TL_COLD int tl_json_text(tl_chars in, uint64_t *keys, size_t max_keys, tl_value *v)
{
    tl_json j = tl_json_of(in, keys, max_keys);
    if (!tl_json_value(&j, 0, v)) return 0;
    tl_skip_blanks(&j);
    /* a string that ends in the middle of a damaged escape has no end quote */
    return j.c < 0 && j.in.at >= j.in.n_more && (in.escaped ? j.in.p < j.in.end && *j.in.p == '"' : j.in.p >= j.in.end);
}

TL_COLD int tl_same_name(const char *name, int64_t length, const char *other)
{
    int64_t i;
    for (i = 0; i < length; i++)
        if (other[i] == 0 || name[i] != other[i]) return 0;
    return other[length] == 0;
}

/* Find a value of an object that has been read. */
TL_COLD int tl_find(const tl_value *object, const char *name, tl_value *v)
{
    tl_json j = object->at;
    char key[32];
    int64_t length;
    int first = 1;
    v->type = 0;
    if (object->type != '{') return 0;
    j.keys = NULL;
    tl_step_on(&j);
    while (tl_json_key(&j, first, key, (int64_t)sizeof key, &length, NULL) > 0) {
        if (!tl_json_value(&j, 0, v)) return 0;
        if (length <= (int64_t)sizeof key && tl_same_name(key, length, name)) return 1;
        first = 0;
    }
    v->type = 0;
    return 0;
}

/* Typed values of an object: 0 if there is none of the type. */
TL_COLD int tl_find_int(const tl_value *object, const char *name, int64_t *out)
{
    tl_value v;
    if (!tl_find(object, name, &v) || v.type != 'i') return 0;
    *out = v.i;
    return 1;
}

TL_COLD int tl_find_flag(const tl_value *object, const char *name, int *out)
{
    tl_value v;
    if (!tl_find(object, name, &v) || v.type != 't') return 0;
    *out = (int)v.i;
    return 1;
}

TL_COLD int tl_find_float(const tl_value *object, const char *name, double *out)
{
    tl_value v;
    if (!tl_find(object, name, &v) || v.type != 'f') return 0;
    *out = v.f;
    return 1;
}

TL_COLD int tl_is(const tl_value *v, const char *text)
{
    tl_json j = v->at;
    char name[32];
    int64_t length;
    if (v->type != '"') return 0;
    length = tl_json_string(&j, name, (int64_t)sizeof name, NULL);
    return length >= 0 && length <= (int64_t)sizeof name && tl_same_name(name, length, text);
}

TL_COLD int tl_find_is(const tl_value *object, const char *name, const char *text)
{
    tl_value v;
    return tl_find(object, name, &v) && tl_is(&v, text);
}

/* -- the container ------------------------------------------------------------------------------- */

enum { TL_F64, TL_F32, TL_F16, TL_I64, TL_I32, TL_I8, TL_U16, TL_U8, TL_BOOL, TL_N_TYPES, TL_W };

enum {
#define TL_SLOT(name, type) TL_SLOT_##name,
    TL_TREE_ARRAYS(TL_SLOT)
#undef TL_SLOT
    TL_SLOT_segment_ptr, TL_SLOT_row_base, TL_SLOT_labels, TL_SLOT_labels_utf8, TL_SLOT_labels_ptr, TL_SLOT_features_utf8,
    TL_SLOT_features_ptr, TL_SLOT_term_bytes, TL_SLOT_term_ptr, TL_SLOT_idf, TL_SLOT_U,
    TL_SLOT_class_count, TL_SLOT_words, TL_SLOT_children, TL_SLOT_weights, TL_SLOT_bias_of_nodes,
    TL_SLOT_quality, TL_N_SLOTS = TL_SLOT_quality + 6
};

/* An array as the header describes it. */
typedef struct tl_entry {
    int found, own, type, n_axes;
    int64_t shape[4], begin, end;
} tl_entry;

typedef struct tl_file {
    const uint8_t *data; /* behind the header */
    int64_t size;
    tl_value header, metadata;
    tl_entry entries[TL_N_SLOTS];
} tl_file;

TL_COLD int tl_slot_of(const char *name, int64_t length)
{
    static const char *const names[TL_N_SLOTS] = {
#define TL_NAME(name, type) "tree." #name,
        TL_TREE_ARRAYS(TL_NAME)
#undef TL_NAME
        "tree.segment_ptr", "tree.row_base", "labels", "labels.utf8", "labels.ptr", "features.utf8",
        "features.ptr", "text.term_bytes", "text.term_ptr", "text.idf", "U", "class_count", "words.keys", "nodes.children",
        "nodes.weights", "nodes.bias", "nodes.quality.J", "nodes.quality.J_max",
        "nodes.quality.balancedness", "nodes.quality.purity", "nodes.quality.n_labels",
        "nodes.quality.n_examples",
    };
    int i;
    for (i = 0; i < TL_N_SLOTS; i++)
        if (tl_same_name(name, length, names[i])) return i;
    return -1;
}

TL_COLD int tl_type_of(const tl_value *v)
{
    static const char *const names[TL_N_TYPES] = {"F64", "F32", "F16", "I64", "I32",
                                                  "I8",  "U16", "U8",  "BOOL"};
    int i;
    for (i = 0; i < TL_N_TYPES; i++)
        if (tl_is(v, names[i])) return i;
    return -1;
}

static inline int64_t tl_type_size(int type)
{
    static const int8_t sizes[TL_N_TYPES] = {8, 4, 2, 8, 4, 1, 2, 1, 1};
    return sizes[type];
}

/* Read a list of at most four sizes; -1 if it is none. */
TL_COLD int tl_sizes(const tl_value *list, int64_t *out)
{
    tl_json j = list->at;
    tl_value v;
    int64_t i;
    if (list->type != '[' || list->n > 4) return -1;
    tl_step_on(&j);
    for (i = 0; i < list->n; i++) {
        tl_skip_blanks(&j);
        if (j.c == ',') tl_step_on(&j);
        tl_skip_blanks(&j);
        if (!tl_json_value(&j, 0, &v) || v.type != 'i' || v.i < 0 || v.i >= (int64_t)1 << 62) return -1;
        out[i] = v.i;
    }
    return (int)list->n;
}

TL_COLD int tl_read_entry(const tl_file *file, const tl_value *v, tl_entry *e)
{
    tl_value type, shape, offsets;
    int64_t span[4], n = 1;
    int i, empty = 0;
    if (v->type != '{' || v->n != 3) return 0;
    if (!tl_find(v, "dtype", &type) || !tl_find(v, "shape", &shape)) return 0;
    if (!tl_find(v, "data_offsets", &offsets)) return 0;
    e->type = tl_type_of(&type);
    e->n_axes = tl_sizes(&shape, e->shape);
    if (e->type < 0 || e->n_axes < 0 || tl_sizes(&offsets, span) != 2) return 0;
    e->begin = span[0];
    e->end = span[1];
    if (e->begin > e->end || e->end > file->size) return 0;
    for (i = 0; i < e->n_axes; i++) empty |= e->shape[i] == 0;
    for (i = 0; i < e->n_axes && !empty; i++) {
        if (e->shape[i] > file->size / n) return 0;
        n *= e->shape[i];
    }
    n = empty ? 0 : n;
    return n <= file->size && n * tl_type_size(e->type) == e->end - e->begin;
}

static inline int tl_span_before(const int64_t *spans, size_t a, size_t b)
{
    if (spans[2 * a] != spans[2 * b]) return spans[2 * a] < spans[2 * b];
    return spans[2 * a + 1] < spans[2 * b + 1];
}

TL_COLD void tl_swap_spans(int64_t *spans, size_t a, size_t b)
{
    int64_t begin = spans[2 * a], end = spans[2 * a + 1];
    spans[2 * a] = spans[2 * b];
    spans[2 * a + 1] = spans[2 * b + 1];
    spans[2 * b] = begin;
    spans[2 * b + 1] = end;
}

/* Whether spans, in any order, fill 0..size without gap or overlap. */
TL_COLD int tl_spans_fill(int64_t *spans, size_t n, int64_t size)
{
    int64_t at = 0;
    size_t i, end;
    for (i = n / 2 + n; i-- > 0;) { /* heapsort: first the heap, then from its end on */
        size_t root = i < n ? 0 : i - n, child;
        end = i < n ? i : n;
        if (i < n) tl_swap_spans(spans, 0, i);
        while ((child = 2 * root + 1) < end) {
            if (child + 1 < end && tl_span_before(spans, child, child + 1)) child += 1;
            if (!tl_span_before(spans, root, child)) break;
            tl_swap_spans(spans, root, child);
            root = child;
        }
    }
    for (i = 0; i < n; i++) {
        if (spans[2 * i] != at) return 0;
        at = spans[2 * i + 1];
    }
    return at == size;
}

/* Read the header and the metadata of a file; without room, keys and spans are not compared. */
TL_COLD int tl_read_header(tl_file *file, const void *data, size_t size, tl_room room)
{
    const uint8_t *p = (const uint8_t *)data;
    tl_value v;
    tl_json j;
    tl_chars in = {0, 0, {0, 0, 0, 0}, 0, 0, 0};
    uint64_t length, *keys = NULL;
    int64_t *spans = NULL;
    size_t n_spans = 0, max_keys = 0;
    int first = 1, has_metadata = 0, i;
    for (i = 0; i < TL_N_SLOTS; i++) file->entries[i].found = file->entries[i].own = 0;
    if (p == NULL || size < 8) return TL_BAD_FILE;
    length = tl_u64(p);
    if (length > size - 8 || length > 16000000) return TL_BAD_FILE;
    file->data = p + 8 + length;
    file->size = (int64_t)(size - 8 - (size_t)length);
    if (!tl_is_utf8(p + 8, (size_t)length)) return TL_BAD_JSON;
    if (room.at != NULL) {
        max_keys = (size_t)length / 4 + 1;
        keys = (uint64_t *)tl_take(&room, max_keys, 8);
        spans = (int64_t *)tl_take(&room, (size_t)length / 16 + 1, 16);
        if (keys == NULL || spans == NULL) return TL_NO_MEMORY;
    }
    in.p = p + 8;
    in.end = p + 8 + length;
    if (!tl_json_text(in, keys, max_keys, &file->header) || file->header.type != '{') return TL_BAD_JSON;
    j = file->header.at;
    j.keys = NULL;
    tl_step_on(&j);
    for (;; first = 0) {
        char name[48];
        int64_t n;
        tl_entry e;
        if (tl_json_key(&j, first, name, (int64_t)sizeof name, &n, NULL) <= 0) break;
        if (!tl_json_value(&j, 0, &v)) return TL_BAD_JSON;
        if (n <= (int64_t)sizeof name && tl_same_name(name, n, "__metadata__")) {
            tl_value text;
            if (!tl_find(&v, "thinleaf", &text) || text.type != '"') return TL_BAD_JSON;
            in = text.at.in; /* behind the quote */
            in.escaped = 1;
            if (!tl_json_text(in, keys, max_keys, &file->metadata)) return TL_BAD_JSON;
            if (file->metadata.type != '{') return TL_BAD_JSON;
            has_metadata = 1;
            continue;
        }
        e.found = 1;
        e.own = 0;
        if (!tl_read_entry(file, &v, &e)) return TL_BAD_FILE;
        if (spans != NULL) {
            spans[2 * n_spans] = e.begin;
            spans[2 * n_spans + 1] = e.end;
        }
        n_spans += 1;
        i = n <= (int64_t)sizeof name ? tl_slot_of(name, n) : -1;
        if (i >= 0) file->entries[i] = e;
    }
    if (!has_metadata) return TL_BAD_JSON;
    if (spans != NULL && !tl_spans_fill(spans, n_spans, file->size)) return TL_BAD_FILE;
    return TL_OK;
}

/* Take an array of a type and number of axes; it is the model's own then. */
TL_COLD int tl_own(tl_file *file, int slot, int type, int n_axes, tl_array *out)
{
    tl_entry *e = &file->entries[slot];
    if (!e->found || e->type != type || e->n_axes != n_axes) return 0;
    e->own = 1;
    out->at = file->data + e->begin;
    out->n = (e->end - e->begin) / tl_type_size(type);
    return 1;
}

/* Whether every array that is not the model's belongs to a section, and sections have good names. */
TL_COLD int tl_sections_fit(const tl_file *file, tl_room room)
{
    tl_value sections, v, name_of_array;
    tl_json j;
    uint64_t *names, hash;
    size_t n = 0, low, high;
    char name[512];
    int64_t length, i;
    int first = 1;
    if (!tl_find(&file->metadata, "sections", &sections) || sections.type != '{') return 0;
    if (!tl_find(&file->metadata, "summary", &v) || v.type != '{') return 0;
    names = (uint64_t *)tl_take(&room, (uint64_t)sections.n, 8);
    if (names == NULL && sections.n > 0) return room.at == NULL;
    j = sections.at;
    j.keys = NULL;
    tl_step_on(&j);
    for (; tl_json_key(&j, first, name, (int64_t)sizeof name, &length, NULL) > 0; first = 0) {
        /* the hash of what stands before a dot; names with one are refused */
        uint64_t h = 0xCBF29CE484222325u;
        if (!tl_json_value(&j, 0, &v) || v.type != '{' || length == 0) return 0;
        if (length > (int64_t)sizeof name) return 0;
        if (tl_same_name(name, length, "tree") || tl_same_name(name, length, "labels")) return 0;
        if (tl_same_name(name, length, "features")) return 0;
        for (i = 0; i < length; i++) {
            if (name[i] == '.') return 0;
            h = (h ^ (uint8_t)name[i]) * 0x100000001B3u;
        }
        if (n < (size_t)sections.n) names[n++] = h;
    }
    tl_sort(names, n);
    j = file->header.at;
    j.keys = NULL;
    tl_step_on(&j);
    first = 1;
    for (; tl_json_key(&j, first, name, (int64_t)sizeof name, &length, NULL) > 0; first = 0) {
        int slot = length <= (int64_t)sizeof name ? tl_slot_of(name, length) : -1;
        if (!tl_json_value(&j, 0, &name_of_array)) return 0;
        if (slot >= 0 && file->entries[slot].own) continue;
        if (length <= (int64_t)sizeof name && tl_same_name(name, length, "__metadata__")) continue;
        hash = 0xCBF29CE484222325u;
        for (i = 0; i < length && i < (int64_t)sizeof name && name[i] != '.'; i++)
            hash = (hash ^ (uint8_t)name[i]) * 0x100000001B3u;
        low = 0;
        high = n;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (names[middle] < hash) low = middle + 1;
            else high = middle;
        }
        if (low == n || names[low] != hash) return 0;
    }
    return 1;
}

/* -- checks of arrays ---------------------------------------------------------------------------- */

/* Whether an array has offsets of n parts of so many items. */
TL_COLD int tl_is_offsets(tl_array a, int64_t n, int64_t n_items)
{
    int64_t i, at = 0;
    if (n < 0 || a.n != n + 1) return 0;
    for (i = 0; i <= n; i++) {
        int64_t next = tl_offset(a, i);
        if (next < at || (i == 0 && next != 0)) return 0;
        at = next;
    }
    return at == n_items;
}

TL_ONCE int tl_ids_ascend(tl_array a, int size, int64_t begin, int64_t end, int64_t limit)
{
    int64_t t, last = -1;
    for (t = begin; t < end; t++) {
        int64_t id = tl_id(a, t, size);
        if (id <= last || id >= limit) return 0;
        last = id;
    }
    return 1;
}

TL_ONCE int tl_all_finite(tl_array a, int64_t begin, int64_t end)
{
    int64_t t;
    uint32_t bad = 0;
    for (t = begin; t < end; t++) bad |= (tl_u32(a.at + 4 * t) & 0x7F800000u) == 0x7F800000u;
    return !bad;
}

TL_COLD int tl_weights_finite(int kind, tl_array a, int64_t begin, int64_t end)
{
    int64_t t;
    uint32_t bad = 0;
    if (kind == TL_FLOAT32) return tl_all_finite(a, begin, end);
    if (kind == TL_FLOAT16)
        for (t = begin; t < end; t++) bad |= (tl_u16(a.at + 2 * t) & 0x7C00u) == 0x7C00u;
    return !bad;
}

static inline int tl_bit(uint8_t *bits, int64_t i)
{
    int was = (bits[i / 8] >> (i % 8)) & 1;
    bits[i / 8] = (uint8_t)(bits[i / 8] | (1 << (i % 8)));
    return was;
}

TL_COLD uint8_t *tl_take_bits(tl_room *room, int64_t n)
{
    uint8_t *bits = (uint8_t *)tl_take(room, (uint64_t)n / 8 + 1, 1);
    int64_t i;
    for (i = 0; bits != NULL && i < n / 8 + 1; i++) bits[i] = 0;
    return bits;
}

TL_COLD int tl_structure_fits(tl_model *m)
{
    int64_t node, n_routers = 0, n_leaves = 0, begin, end;
    m->n_nodes = m->child.n;
    m->n_leaves = m->class_ptr.n - 1;
    if (m->n_trees <= 0 || m->n_trees > m->n_leaves || m->n_nodes > INT32_MAX) return 0;
    if (m->n_nodes != 2 * m->n_leaves - m->n_trees) return 0;
    for (node = 0; node < m->n_nodes; node++) {
        int64_t child = tl_int(m->child, node);
        if (child >= 0) {
            if (child != 2 * n_routers + m->n_trees || child <= node) return 0;
            n_routers += 1;
        } else {
            if (-1 - child != n_leaves) return 0;
            n_leaves += 1;
        }
    }
    if (n_leaves != m->n_leaves) return 0;
    m->depth = -1;
    for (begin = 0, end = m->n_trees; begin < end;) {
        int64_t below = 0;
        for (node = begin; node < end; node++) below += tl_int(m->child, node) >= 0;
        begin = end;
        end += 2 * below;
        m->depth += 1;
    }
    return 1;
}

TL_COLD int tl_routers_fit(const tl_model *m, tl_room room)
{
    int64_t n = m->n_nodes, n_dense = 0, n_rows, node, i;
    int64_t n_lists = m->sparse ? m->n_features : n, limit = m->sparse ? n : m->n_features;
    uint8_t *seen;
    if (m->bias.n != n || m->dense_at.n != n) return 0;
    if (m->dense_val.n > 0 && (m->n_features == 0 || m->dense_val.n % m->n_features != 0)) return 0;
    n_rows = m->dense_val.n > 0 ? m->dense_val.n / m->n_features : 0;
    if (n_rows > n) return 0;
    seen = tl_take_bits(&room, n_rows);
    for (node = 0; node < n; node++) {
        int64_t row = tl_int(m->dense_at, node);
        if (row < -1 || row >= n_rows) return 0;
        if (row < 0) continue;
        if (tl_int(m->child, node) < 0 || (seen != NULL && tl_bit(seen, row))) return 0;
        n_dense += 1;
    }
    if (n_dense != n_rows) return 0;
    if (!tl_is_offsets(m->router_ptr, n_lists, m->router_idx.n)) return 0;
    if (m->router_val.n != m->router_idx.n) return 0;
    for (i = 0; i < n_lists; i++)
        if (!tl_ids_ascend(m->router_idx, m->node_size, tl_offset(m->router_ptr, i),
                           tl_offset(m->router_ptr, i + 1), limit)) return 0;
    return tl_all_finite(m->bias, 0, n) && tl_all_finite(m->dense_val, 0, m->dense_val.n) &&
           tl_weights_finite(m->router_weights, m->router_val, 0, m->router_val.n);
}

/* -- leaves: all that knows their layout is here --------------------------------------------------*/

#define TL_ROW_SHIFT 5 /* 32 rows share an offset, if they are narrow */

/* Where the entries of a row begin, and those of the row before it end. */
TL_QUICK int64_t tl_row_begin(const tl_model *m, int64_t r)
{
    if (!m->narrow_rows) return tl_offset(m->row_ptr, r);
    return (int64_t)(tl_u64(m->row_base.at + 8 * (r >> TL_ROW_SHIFT)) + tl_u16(m->row_ptr.at + 2 * r));
}

/* Whether narrow features and rows have their offsets, and no others do. */
TL_COLD int tl_narrow_fits(const tl_model *m)
{
    int64_t n = m->n_segments, i;
    if (m->router_weights == TL_FLOAT16 && m->node_size != 2) return 0;
    if (m->row_base.n != (m->narrow_rows ? (m->feat_idx.n >> TL_ROW_SHIFT) + 1 : 0)) return 0;
    if (n == 0) return m->segment_ptr.n == 0;
    if (!tl_is_offsets(m->segment_ptr, m->n_leaves * n, m->feat_idx.n)) return 0;
    for (i = 0; i < m->n_leaves; i++)
        if (tl_offset(m->segment_ptr, i * n) != tl_offset(m->feat_ptr, i)) return 0;
    return 1;
}

/* Sizes of the leaves' arrays. */
TL_COLD int tl_leaves_fit(tl_model *m)
{
    int64_t n = m->n_leaves, i;
    if (!tl_is_offsets(m->class_ptr, n, m->class_ids.n)) return 0;
    if (!tl_is_offsets(m->feat_ptr, n, m->feat_idx.n)) return 0;
    if (!tl_is_offsets(m->block_ptr, n, m->block.n)) return 0;
    if (!tl_is_offsets(m->extra_ptr, n, m->extra_ids.n)) return 0;
    if (m->leaf_bias.n != m->class_ids.n) return 0;
    if (m->scale.n != (m->weights == TL_INT8 ? m->class_ids.n : 0)) return 0;
    m->max_classes = m->max_extra = 0;
    for (i = 0; i < n; i++) {
        int64_t k = tl_offset(m->class_ptr, i + 1) - tl_offset(m->class_ptr, i);
        int64_t used = tl_offset(m->feat_ptr, i + 1) - tl_offset(m->feat_ptr, i);
        int64_t size = tl_offset(m->block_ptr, i + 1) - tl_offset(m->block_ptr, i);
        int64_t extra = tl_offset(m->extra_ptr, i + 1) - tl_offset(m->extra_ptr, i);
        int64_t rows = used == 0 && !m->sparse ? m->n_features : used;
        if (k <= 0 || k > m->n_classes) return 0;
        if (size != 0 && (size % k != 0 || size / k != rows)) return 0;
        if (size == 0 && used > 0 && k > 65536) return 0;
        if (k > m->max_classes) m->max_classes = k;
        if (extra > m->max_extra) m->max_extra = extra;
    }
    if (m->row_ptr.n != m->feat_idx.n + 1 || m->entry.n != m->slot.n) return 0;
    if (!tl_narrow_fits(m)) return 0;
    return tl_row_begin(m, 0) == 0 && tl_row_begin(m, m->feat_idx.n) == m->slot.n;
}

/* Whether the features of a leaf are in range and ascending. */
TL_COLD int tl_features_ascend(const tl_model *m, int64_t leaf, int64_t begin, int64_t end)
{
    int64_t i, n = m->n_segments;
    if (n == 0) return tl_ids_ascend(m->feat_idx, 4, begin, end, m->n_features);
    for (i = 0; i < n; i++)
        if (!tl_ids_ascend(m->feat_idx, 2, tl_offset(m->segment_ptr, leaf * n + i),
                           tl_offset(m->segment_ptr, leaf * n + i + 1), m->n_features - 65536 * i)) return 0;
    return 1;
}

TL_SMALL int32_t tl_slot(const uint8_t *slot, int64_t t, int size)
{
    return size == 1 ? slot[t] : tl_u16(slot + 2 * t);
}

/* Whether a leaf's ids are in range and ascending, and its weights finite. */
TL_ONCE int tl_leaf_is_valid(const tl_model *m, int64_t leaf)
{
    int64_t first = tl_offset(m->class_ptr, leaf), last = tl_offset(m->class_ptr, leaf + 1);
    int64_t begin = tl_offset(m->feat_ptr, leaf), end = tl_offset(m->feat_ptr, leaf + 1);
    int64_t block = tl_offset(m->block_ptr, leaf), block_end = tl_offset(m->block_ptr, leaf + 1);
    int64_t t;
    if (!tl_ids_ascend(m->class_ids, 4, first, last, m->n_classes)) return 0;
    if (!tl_all_finite(m->leaf_bias, first, last)) return 0;
    if (m->weights == TL_INT8 && !tl_all_finite(m->scale, first, last)) return 0;
    if (!tl_features_ascend(m, leaf, begin, end)) return 0;
    if (!tl_weights_finite(m->weights, m->block, block, block_end)) return 0;
    if (begin < end) {
        int64_t at = tl_row_begin(m, begin), stop = tl_row_begin(m, end);
        if (at < 0 || at > stop || stop > m->slot.n) return 0;
        if (block != block_end && at != stop) return 0;
        for (t = begin; t < end; t++)
            if (tl_row_begin(m, t) > tl_row_begin(m, t + 1)) return 0;
        if (!tl_weights_finite(m->weights, m->entry, at, stop)) return 0;
        for (t = at; t < stop; t++)
            if (tl_slot(m->slot.at, t, m->slot_size) >= last - first) return 0;
    }
    for (t = tl_offset(m->extra_ptr, leaf); t < tl_offset(m->extra_ptr, leaf + 1); t++) {
        int32_t id = tl_int(m->extra_ids, t);
        double v = tl_long_number(m->extra, t);
        if (id < 0 || id >= m->n_classes || !(v >= 0.0) || !tl_finite64(v)) return 0;
    }
    return 1;
}

/* A row as the layout wants it: x, or indices and values. */
typedef struct tl_row {
    const float *x;
    const int32_t *idx;
    const float *val;
    int64_t n;
    float *top; /* w.x of the first n_top routers, if the layout is for sparse rows */
    int64_t n_top;
} tl_row;

static inline void tl_add_block(int kind, const uint8_t *w, float x, float *TL_RESTRICT scores,
                                int64_t k)
{
    int64_t c;
    if (kind == TL_FLOAT32)
        for (c = 0; c < k; c++) scores[c] += x * tl_f32(w + 4 * c);
    else if (kind == TL_FLOAT16)
        for (c = 0; c < k; c++) scores[c] += x * tl_half(tl_u16(w + 2 * c));
    else
        for (c = 0; c < k; c++) scores[c] += x * (float)(int8_t)w[c];
}

/* Four rows of a block of float32: as one by one, in one pass. */
static inline void tl_add_four(const uint8_t *w, const float *x, float *TL_RESTRICT scores, int64_t k)
{
    const uint8_t *w1 = w + 4 * k, *w2 = w + 8 * k, *w3 = w + 12 * k;
    float x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    int64_t c;
    for (c = 0; c < k; c++) {
        float total = scores[c];
        total += x0 * tl_f32(w + 4 * c);
        total += x1 * tl_f32(w1 + 4 * c);
        total += x2 * tl_f32(w2 + 4 * c);
        total += x3 * tl_f32(w3 + 4 * c);
        scores[c] = total;
    }
}

/* Add x times some entries at their slots, which have a size. */
TL_QUICK void tl_add_entries(const tl_model *m, int size, int64_t begin, int64_t end, float x,
                             float *TL_RESTRICT scores)
{
    const uint8_t *slot = m->slot.at, *w = m->entry.at;
    int64_t t;
    if (m->weights == TL_FLOAT32)
        for (t = begin; t < end; t++) scores[tl_slot(slot, t, size)] += x * tl_f32(w + 4 * t);
    else if (m->weights == TL_FLOAT16)
        for (t = begin; t < end; t++) scores[tl_slot(slot, t, size)] += x * tl_half(tl_u16(w + 2 * t));
    else
        for (t = begin; t < end; t++) scores[tl_slot(slot, t, size)] += x * (float)(int8_t)w[t];
}

#define TL_TOGETHER 32

/* Where each of some features stands in ids[begin:end], ascending; -1 if nowhere. All searches go on
 * together, so that their cache misses overlap. */
TL_SMALL void tl_find_features(tl_array ids, int width, int64_t begin, int64_t end,
                               const int32_t *wanted, int n, int32_t *at)
{
    int64_t size = end - begin;
    int t;
    ids.at += width * begin;
    for (t = 0; t < n; t++) at[t] = 0;
    while (size > 1) {
        int64_t half = size / 2;
        for (t = 0; t < n; t++) /* without branches: half of them would be mispredicted */
            at[t] += (int32_t)half & -(int32_t)(tl_id(ids, at[t] + half - 1, width) < wanted[t]);
        size -= half;
    }
    for (t = 0; t < n; t++) {
        if (size == 1 && tl_id(ids, at[t], width) < wanted[t]) at[t] += 1;
        if (begin + at[t] >= end || tl_id(ids, at[t], width) != wanted[t]) at[t] = -1;
    }
}

/* The same where a leaf has segments of features with the same upper bits, each of its own size. */
static inline void tl_find_in_segments(const tl_model *m, int64_t leaf, const int32_t *wanted, int n,
                                       int32_t *at)
{
    const uint8_t *ptr = m->segment_ptr.at + 8 * leaf * m->n_segments;
    int64_t first = tl_i64(ptr), most = 0;
    int32_t size[TL_TOGETHER];
    tl_array ids = {m->feat_idx.at + 2 * first, 0};
    int t;
    for (t = 0; t < n; t++) {
        const uint8_t *p = ptr + 8 * (wanted[t] >> 16);
        at[t] = (int32_t)(tl_i64(p) - first);
        size[t] = (int32_t)(tl_i64(p + 8) - tl_i64(p));
        if (size[t] > most) most = size[t];
    }
    for (; most > 1; most -= most / 2)
        for (t = 0; t < n; t++) {
            int32_t half = size[t] / 2, before = at[t] + half - 1;
            if (before < 0) before = 0; /* half is 0 then: nothing is added */
            at[t] += half & -(int32_t)(tl_id(ids, before, 2) < (wanted[t] & 0xFFFF));
            size[t] -= half;
        }
    for (t = 0; t < n; t++) {
        int64_t end = tl_i64(ptr + 8 * ((wanted[t] >> 16) + 1)) - first;
        int32_t low = wanted[t] & 0xFFFF;
        if (size[t] == 1 && tl_id(ids, at[t], 2) < low) at[t] += 1;
        if (at[t] >= end || tl_id(ids, at[t], 2) != low) at[t] = -1;
    }
}

/* Add x times the entries of some rows of a leaf: of those that were found. */
static inline void tl_add_rows(const tl_model *m, int64_t begin, const int32_t *found, const float *x, int n,
                               float *TL_RESTRICT scores)
{
    int i;
#ifdef __OPTIMIZE_SIZE__
    for (i = 0; i < n; i++) {
        int64_t r = begin + found[i];
        if (found[i] >= 0) tl_add_entries(m, m->slot_size, tl_row_begin(m, r), tl_row_begin(m, r + 1), x[i], scores);
    }
#else /* cache misses overlap */
    int64_t from[TL_TOGETHER], to[TL_TOGETHER], width = m->weights == TL_FLOAT32 ? 4 : m->weights == TL_FLOAT16 ? 2 : 1;
    int known[TL_TOGETHER], n_known = 0;
    for (i = 0; i < n; i++) { /* without a branch: which are known cannot be foreseen */
        known[n_known] = i;
        n_known += found[i] >= 0;
    }
    for (i = 0; i < n_known; i++) TL_FETCH(m->row_ptr.at + (m->narrow_rows ? 2 : 8) * (begin + found[known[i]]));
    for (i = 0; i < n_known; i++) {
        int64_t r = begin + found[known[i]];
        from[i] = tl_row_begin(m, r);
        to[i] = tl_row_begin(m, r + 1);
        TL_FETCH(m->slot.at + m->slot_size * from[i]);
        TL_FETCH(m->entry.at + width * from[i]);
    }
    for (i = 0; i < n_known; i++) {
        if (m->slot_size == 2) tl_add_entries(m, 2, from[i], to[i], x[known[i]], scores);
        else tl_add_entries(m, 1, from[i], to[i], x[known[i]], scores);
    }
#endif
}

/* Fill in Wx + b of a leaf; returns the number of classes. */
TL_ONCE int64_t tl_score_leaf(const tl_model *m, const tl_row *row, int64_t leaf,
                                    float *TL_RESTRICT scores)
{
    int64_t first = tl_offset(m->class_ptr, leaf), k = tl_offset(m->class_ptr, leaf + 1) - first;
    int64_t begin = tl_offset(m->feat_ptr, leaf), end = tl_offset(m->feat_ptr, leaf + 1);
    int64_t at = tl_offset(m->block_ptr, leaf), c, r, t;
    int is_block = at < tl_offset(m->block_ptr, leaf + 1), kind = m->weights;
    int64_t width = kind == TL_FLOAT32 ? 4 : kind == TL_FLOAT16 ? 2 : 1;
    const uint8_t *block = m->block.at + width * at, *bias = m->leaf_bias.at + 4 * first;
    if (kind == TL_INT8)
        for (c = 0; c < k; c++) scores[c] = 0.0f;
    else
        for (c = 0; c < k; c++) scores[c] = tl_f32(bias + 4 * c);
    if (m->sparse) {
        for (t = 0; t < row->n; t += TL_TOGETHER) {
            int32_t found[TL_TOGETHER];
            int n = row->n - t < TL_TOGETHER ? (int)(row->n - t) : TL_TOGETHER, i;
            if (m->n_segments == 0) tl_find_features(m->feat_idx, 4, begin, end, row->idx + t, n, found);
            else if (m->n_segments == 1) tl_find_features(m->feat_idx, 2, begin, end, row->idx + t, n, found);
            else tl_find_in_segments(m, leaf, row->idx + t, n, found);
            if (is_block) {
                for (i = 0; i < n; i++)
                    if (found[i] >= 0) tl_add_block(kind, block + width * k * found[i], row->val[t + i], scores, k);
                continue;
            }
            tl_add_rows(m, begin, found, row->val + t, n, scores);
        }
    } else if (!is_block) {
        for (r = begin; r < end; r++)
            tl_add_entries(m, 2, tl_offset(m->row_ptr, r), tl_offset(m->row_ptr, r + 1),
                           row->x[tl_int(m->feat_idx, r)], scores);
    } else if (begin == end) { /* over all features */
        int64_t n = m->n_features, fours = kind == TL_FLOAT32 ? n - n % 4 : 0;
        for (r = 0; r < fours; r += 4) tl_add_four(block + 4 * k * r, row->x + r, scores, k);
        for (; r < n; r++) tl_add_block(kind, block + width * k * r, row->x[r], scores, k);
    } else {
        for (r = begin; r < end; r++)
            tl_add_block(kind, block + width * k * (r - begin), row->x[tl_int(m->feat_idx, r)], scores, k);
    }
    if (kind == TL_INT8) {
        const uint8_t *scale = m->scale.at + 4 * first;
        for (c = 0; c < k; c++) scores[c] = scores[c] * tl_f32(scale + 4 * c) + tl_f32(bias + 4 * c);
    }
    return k;
}

/* -- opening a file ------------------------------------------------------------------------------ */

TL_COLD int tl_outside_fits(const tl_model *m, tl_room room)
{
    int64_t i;
    double last = 1.0;
    uint8_t *seen = tl_take_bits(&room, m->n_classes);
    if (m->extra.n != m->extra_ids.n) return 0;
    if (m->inside.n != m->n_leaves || m->outside.n != m->n_leaves) return 0;
    if (m->prior.n != m->n_classes || m->rank.n != m->n_classes) return 0;
    for (i = 0; i < m->n_leaves; i++) {
        double inside = tl_long_number(m->inside, i), outside = tl_long_number(m->outside, i);
        if (!(inside >= 0.0 && inside <= 1.0 && outside >= 0.0 && tl_finite64(outside))) return 0;
    }
    for (i = 0; i < m->n_classes; i++) {
        int32_t id = tl_int(m->rank, i);
        double prior;
        if (id < 0 || id >= m->n_classes || (seen != NULL && tl_bit(seen, id))) return 0;
        prior = tl_long_number(m->prior, id);
        if (!(prior >= 0.0 && prior <= last)) return 0;
        last = prior;
        prior = tl_long_number(m->prior, i);
        if (!(prior >= 0.0 && prior <= 1.0)) return 0;
    }
    return 1;
}

/* Whether strings are so many, each UTF-8. */
TL_COLD int tl_strings_fit(tl_array utf8, tl_array ptr, int64_t n)
{
    int64_t i;
    if (!tl_is_offsets(ptr, n, utf8.n)) return 0;
    for (i = 0; i < n; i++) {
        int64_t begin = tl_offset(ptr, i), end = tl_offset(ptr, i + 1);
        if (!tl_is_utf8(utf8.at + begin, (size_t)(end - begin))) return 0;
    }
    return 1;
}

TL_ONCE int tl_bytes_differ(const uint8_t *a, int64_t n_a, const uint8_t *b, int64_t n_b)
{
    int64_t i;
    for (i = 0; i < n_a && i < n_b; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return n_a == n_b ? 0 : n_a < n_b ? -1 : 1;
}

/* The bytes of a label, by which labels are told apart. */
static inline const uint8_t *tl_label_bytes(const tl_model *m, int64_t i, int64_t *n)
{
    int64_t begin;
    if (m->label_kind != TL_LABEL_TEXT) {
        *n = m->label_kind == TL_LABEL_BOOL ? 1 : 8;
        return m->labels.at + *n * i;
    }
    begin = tl_offset(m->label_ptr, i);
    *n = tl_offset(m->label_ptr, i + 1) - begin;
    while (m->fixed_width && *n > 0 && m->labels.at[begin + *n - 1] == 0) *n -= 1;
    return m->labels.at + begin;
}

static inline int tl_is_zero(const uint8_t *p) { return (tl_u64(p) << 1) == 0; }

static inline uint64_t tl_hash(const uint8_t *p, int64_t n, uint64_t h)
{
    h ^= (uint64_t)n * 0x9E3779B97F4A7C15u;
    for (; n >= 8; n -= 8, p += 8) {
        h = (h ^ tl_u64(p)) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    if (n > 0) {
        uint64_t last = 0;
        int i;
        for (i = 0; i < n; i++) last |= (uint64_t)p[i] << (8 * i);
        h = (h ^ last) * 0x9E3779B97F4A7C15u;
    }
    return h ^ (h >> 32);
}

/* Labels of the kind that is said, one a class, none twice. */
TL_COLD int tl_labels_fit(tl_model *m, tl_file *file, const tl_value *about, tl_room room)
{
    static const int types[3] = {TL_I64, TL_F64, TL_BOOL};
    tl_value kind;
    int64_t i, size;
    int32_t *slots;
    if (!tl_find(about, "labels", &kind)) return 0;
    m->label_kind = tl_is(&kind, "int64")     ? TL_LABEL_INT
                    : tl_is(&kind, "float64") ? TL_LABEL_FLOAT
                    : tl_is(&kind, "bool")    ? TL_LABEL_BOOL
                                              : TL_LABEL_TEXT;
    if (m->label_kind == TL_LABEL_TEXT) {
        m->fixed_width = tl_is(&kind, "str");
        if (!m->fixed_width && !tl_is(&kind, "object")) return 0;
        if (!tl_own(file, TL_SLOT_labels_utf8, TL_U8, 1, &m->labels)) return 0;
        if (!tl_own(file, TL_SLOT_labels_ptr, TL_I64, 1, &m->label_ptr)) return 0;
        if (!tl_strings_fit(m->labels, m->label_ptr, m->n_classes)) return 0;
    } else {
        if (!tl_own(file, TL_SLOT_labels, types[m->label_kind], 1, &m->labels)) return 0;
        if (m->labels.n != m->n_classes) return 0;
        for (i = 0; i < m->n_classes; i++) {
            if (m->label_kind == TL_LABEL_BOOL && m->labels.at[i] > 1) return 0;
            if (m->label_kind == TL_LABEL_FLOAT && !tl_finite64(tl_long_number(m->labels, i))) return 0;
        }
    }
    if (room.at == NULL) return 1;
    size = tl_power_of_two(2 * m->n_classes);
    slots = (int32_t *)tl_take(&room, (uint64_t)size, 4);
    if (slots == NULL) return 0;
    for (i = 0; i < size; i++) slots[i] = -1;
    for (i = 0; i < m->n_classes; i++) {
        static const uint8_t zero[8] = {0};
        int64_t n, n_other, at;
        const uint8_t *p = tl_label_bytes(m, i, &n), *other;
        if (m->label_kind == TL_LABEL_FLOAT && tl_is_zero(p)) p = zero; /* 0.0 is -0.0 */
        for (at = (int64_t)(tl_hash(p, n, 0) & (uint64_t)(size - 1)); slots[at] >= 0;
             at = (at + 1) & (size - 1)) {
            other = tl_label_bytes(m, slots[at], &n_other);
            if (m->label_kind == TL_LABEL_FLOAT && tl_is_zero(other)) other = zero;
            if (tl_bytes_differ(p, n, other, n_other) == 0) return 0;
        }
        slots[at] = (int32_t)i;
    }
    return 1;
}

TL_COLD int tl_features_fit(tl_model *m, tl_file *file, const tl_value *about)
{
    tl_array utf8, ptr;
    int named;
    if (!tl_find_flag(about, "feature_names", &named)) return 0;
    if (!named) return 1;
    return tl_own(file, TL_SLOT_features_utf8, TL_U8, 1, &utf8) &&
           tl_own(file, TL_SLOT_features_ptr, TL_I64, 1, &ptr) &&
           tl_strings_fit(utf8, ptr, m->n_features);
}

/* Two numbers in 1..10, the lower first. */
TL_COLD int tl_find_range(const tl_value *about, const char *name, int *low, int *high)
{
    tl_value v;
    int64_t range[4];
    if (!tl_find(about, name, &v) || tl_sizes(&v, range) != 2) return 0;
    if (range[0] < 1 || range[0] > range[1] || range[1] > 10) return 0;
    *low = (int)range[0];
    *high = (int)range[1];
    return 1;
}

/* Enter all terms into the table; 0 if one is there twice. */
TL_COLD int tl_fill_slots(tl_model *m)
{
    int64_t mask = m->n_slots - 1, i, n_terms = m->idf.n;
    for (i = 0; i < m->n_slots; i++) m->slots[i] = 0;
    for (i = 0; i < n_terms; i++) {
        int64_t begin = tl_offset(m->term_ptr, i), n = tl_offset(m->term_ptr, i + 1) - begin;
        uint64_t h = tl_hash(m->terms.at + begin, n, i >= m->n_word_terms);
        int64_t at = (int64_t)(h & (uint64_t)mask);
        for (; m->slots[at] != 0; at = (at + 1) & mask) {
            int64_t other = (int64_t)(m->slots[at] & 0xFFFFFFFFu) - 1, start;
            if (m->slots[at] >> 32 != h >> 32) continue;
            if ((other >= m->n_word_terms) != (i >= m->n_word_terms)) continue;
            start = tl_offset(m->term_ptr, other);
            if (tl_bytes_differ(m->terms.at + begin, n, m->terms.at + start,
                                tl_offset(m->term_ptr, other + 1) - start) == 0) return 0;
        }
        m->slots[at] = (h & 0xFFFFFFFF00000000u) | (uint64_t)(i + 1);
    }
    return 1;
}

/* How many arrays of the header begin with a prefix. */
TL_COLD int64_t tl_count_arrays(const tl_file *file, const char *prefix)
{
    tl_json j = file->header.at;
    tl_value v;
    char name[16];
    int64_t length, n = 0, i;
    int first = 1;
    j.keys = NULL;
    tl_step_on(&j);
    for (; tl_json_key(&j, first, name, (int64_t)sizeof name, &length, NULL) > 0; first = 0) {
        for (i = 0; prefix[i] && i < length && i < 16 && name[i] == prefix[i];) i++;
        n += prefix[i] == 0;
        if (!tl_json_value(&j, 0, &v)) break;
    }
    return n;
}

/* Read the section "text": TL_OK if texts can become rows, else why not. */
TL_COLD int tl_open_text(tl_model *m, tl_file *file, tl_room *room)
{
    tl_value sections, about, v;
    int64_t version, n_words, n_terms, i;
    int with_chars, is_both;
    if (!tl_find(&file->metadata, "sections", &sections)) return TL_NO_TEXTS;
    if (tl_find(&sections, "columns", &v) || tl_find(&sections, "encoder", &v))
        return tl_find(&sections, "text", &v) ? TL_BAD_TEXT : TL_NO_TEXTS;
    if (!tl_find(&sections, "text", &about) || about.type != '{') return TL_NO_TEXTS;
    if (!tl_find_int(&about, "version", &version) || version < 1 || version > 2) return TL_BAD_TEXT;
    with_chars = version == 2;
    if (about.n != (with_chars ? 9 : 7)) return TL_BAD_TEXT;
    is_both = tl_find_is(&about, "kind", "both");
    m->hashing = tl_find_is(&about, "kind", "hashing");
    if (with_chars ? !is_both && !tl_find_is(&about, "kind", "chars")
                   : !m->hashing && !tl_find_is(&about, "kind", "tfidf")) return TL_BAD_TEXT;
    if (!tl_find_range(&about, "ngram_range", &m->word_low, &m->word_high)) return TL_BAD_TEXT;
    if (!tl_find_int(&about, "min_df", &i) || i < 1 || i > INT32_MAX) return TL_BAD_TEXT;
    if (!tl_find(&about, "max_features", &v)) return TL_BAD_TEXT;
    if (v.type != 'n' && (v.type != 'i' || v.i < 1 || v.i > INT32_MAX)) return TL_BAD_TEXT;
    if (!tl_find_int(&about, "n_buckets", &m->n_buckets)) return TL_BAD_TEXT;
    if (m->n_buckets < 1 || m->n_buckets > 1 << 30) return TL_BAD_TEXT;
    if (m->n_buckets & (m->n_buckets - 1)) return TL_BAD_TEXT;
    if (!tl_find_flag(&about, "signed", &m->has_signs)) return TL_BAD_TEXT;
    m->char_high = 0;
    if (m->hashing) {
        m->n_word_terms = m->n_buckets;
        return m->n_buckets == m->n_features && tl_count_arrays(file, "text.") == 0 ? TL_OK : TL_BAD_TEXT;
    }
    if (!tl_own(file, TL_SLOT_term_bytes, TL_U8, 1, &m->terms)) return TL_BAD_TEXT;
    if (!tl_own(file, TL_SLOT_term_ptr, TL_I64, 1, &m->term_ptr)) return TL_BAD_TEXT;
    if (!tl_own(file, TL_SLOT_idf, TL_F32, 1, &m->idf)) return TL_BAD_TEXT;
    n_terms = m->idf.n;
    if (tl_count_arrays(file, "text.") != 3 || n_terms != m->n_features) return TL_BAD_TEXT;
    if (n_terms < 1 || !tl_is_offsets(m->term_ptr, n_terms, m->terms.n)) return TL_BAD_TEXT;
    if (!tl_strings_fit(m->terms, m->term_ptr, n_terms)) return TL_BAD_TEXT;
    for (i = 0; i < n_terms; i++) {
        float idf = tl_number(m->idf, i);
        if (!(idf > 0.0f) || !tl_finite32(idf)) return TL_BAD_TEXT;
        if (tl_offset(m->term_ptr, i) == tl_offset(m->term_ptr, i + 1)) return TL_BAD_TEXT;
    }
    m->n_word_terms = n_terms;
    if (with_chars) {
        if (!tl_find_range(&about, "char_range", &m->char_low, &m->char_high)) return TL_BAD_TEXT;
        if (!tl_find_int(&about, "n_words", &n_words)) return TL_BAD_TEXT;
        if (n_words < 0 || n_words > n_terms || (!is_both && n_words != 0)) return TL_BAD_TEXT;
        m->n_word_terms = n_words;
        if (!is_both) m->word_high = 0;
    }
    m->n_slots = tl_power_of_two(2 * n_terms);
    m->slots = (uint64_t *)tl_take(room, (uint64_t)m->n_slots, 8);
    if (m->slots == NULL) return TL_NO_MEMORY;
    return tl_fill_slots(m) ? TL_OK : TL_BAD_TEXT;
}

/* Take an array that is narrow; 0 if it may not be. */
TL_COLD int tl_own_narrow(tl_model *m, tl_file *file, int slot, tl_array *out)
{
    int type = TL_U16;
    if (!m->sparse) return 0;
    if (slot == TL_SLOT_router_idx) m->node_size = 2;
    else if (slot == TL_SLOT_feat_idx) m->n_segments = m->n_features > 0 ? (m->n_features + 65535) / 65536 : 1;
    else if (slot == TL_SLOT_row_ptr) m->narrow_rows = 1;
    else if (slot == TL_SLOT_router_val) {
        m->router_weights = TL_FLOAT16;
        type = TL_F16;
    } else if (slot == TL_SLOT_slot) {
        m->slot_size = 1;
        type = TL_U8;
    } else return 0;
    return tl_own(file, slot, type, 1, out);
}

/* Take the arrays of a softmax tree. */
TL_COLD int tl_own_arrays(tl_model *m, tl_file *file, int64_t version)
{
    static const struct {
        uint16_t at;
        uint8_t type;
    } arrays[] = {
#define TL_PLACE(name, type) {offsetof(tl_model, name), TL_##type},
        TL_TREE_ARRAYS(TL_PLACE) TL_PLACE(segment_ptr, I64) TL_PLACE(row_base, I64)
#undef TL_PLACE
    };
    int slot;
    m->node_size = 4;
    m->slot_size = 2;
    for (slot = 0; slot <= TL_SLOT_row_base; slot++) {
        tl_array *out = (tl_array *)(void *)((uint8_t *)m + arrays[slot].at);
        int type = arrays[slot].type;
        if (type == TL_W) type = m->weights == TL_FLOAT32 ? TL_F32 : m->weights == TL_FLOAT16 ? TL_F16 : TL_I8;
        if (slot >= TL_SLOT_segment_ptr && !file->entries[slot].found) continue;
        if (tl_own(file, slot, type, 1, out)) continue;
        if (version < 4 || !tl_own_narrow(m, file, slot, out)) return 0;
    }
    return 1;
}

TL_COLD int tl_open_tree(tl_model *m, tl_file *file, tl_room *room)
{
    const tl_value *about = &file->metadata;
    int64_t version, beam;
    double temperature = 1.0;
    int status;
    tl_room spare;
    if (!tl_find_int(about, "version", &version) || version < 1 || version > 4) return TL_BAD_VERSION;
    if (!tl_find_int(about, "n_features", &m->n_features)) return TL_BAD_JSON;
    if (!tl_find_int(about, "n_classes", &m->n_classes)) return TL_BAD_JSON;
    if (!tl_find_flag(about, "sparse", &m->sparse)) return TL_BAD_JSON;
    if (!tl_find_int(about, "beam", &beam) || beam < 1 || beam > 1024) return TL_BAD_JSON;
    m->n_trees = 1;
    if (version > 1 && !tl_find_int(about, "n_trees", &m->n_trees)) return TL_BAD_JSON;
    if (version > 2 && !tl_find_float(about, "temperature", &temperature)) return TL_BAD_JSON;
    if (!(temperature >= 1e-3 && temperature <= 1e3)) return TL_BAD_JSON;
    m->beam = (int)beam;
    m->sharpness = 1.0 / temperature;
    if (tl_find_is(about, "weights", "float32")) m->weights = TL_FLOAT32;
    else if (tl_find_is(about, "weights", "float16")) m->weights = TL_FLOAT16;
    else if (tl_find_is(about, "weights", "int8")) m->weights = TL_INT8;
    else return TL_BAD_JSON;
    if (m->n_features < 0 || m->n_features > (m->sparse ? (int64_t)INT32_MAX : 1 << 24)) return TL_BAD_MODEL;
    if (m->n_classes < 1 || m->n_classes > INT32_MAX) return TL_BAD_MODEL;
    if (!tl_own_arrays(m, file, version)) return TL_BAD_MODEL;
    if (!tl_structure_fits(m) || !tl_leaves_fit(m)) return TL_BAD_MODEL;
    if (m->prior.n != m->n_classes) return TL_BAD_MODEL;
    if (!tl_routers_fit(m, *room) || !tl_outside_fits(m, *room)) return TL_BAD_MODEL;
    if (!tl_labels_fit(m, file, about, *room)) return TL_BAD_LABELS;
    if (!tl_features_fit(m, file, about)) return TL_BAD_LABELS;
    if (!tl_sections_fit(file, *room)) return TL_BAD_JSON;
    spare = *room;
    status = tl_open_text(m, file, &spare);
    m->text = status;
    if (status == TL_OK) *room = spare;
    return TL_OK;
}

TL_COLD int tl_children_fit(tl_model *m, tl_room room)
{
    int64_t n_all = m->n_nodes + m->n_classes, node, j, n_seen = 0, entries = 0;
    uint8_t *seen = tl_take_bits(&room, n_all);
    int32_t *depth = (int32_t *)tl_take(&room, (uint64_t)m->n_nodes + 1, 4);
    if (seen == NULL || depth == NULL) return 0;
    m->depth = 0;
    depth[0] = 0;
    for (node = 0; node < m->n_nodes; node++) {
        int64_t n_present = 0;
        for (j = 0; j < m->arity; j++) {
            int64_t child = tl_int(m->children, node * m->arity + j);
            if (child == -1) {
                if (m->arity > 2 && tl_number(m->node_bias, node * m->arity + j) != -1e30f) return 0;
                continue;
            }
            if (child < 1 || child >= n_all || tl_bit(seen, child)) return 0;
            n_present += 1;
            n_seen += 1;
            if (child < m->n_nodes) {
                if (child <= node) return 0;
                depth[child] = depth[node] + 1;
            } else {
                entries += depth[node] + 1;
                if (depth[node] + 1 > m->depth) m->depth = depth[node] + 1;
            }
        }
        if (n_present < 2) return 0;
    }
    if (m->n_nodes > 0 && n_seen != n_all - 1) return 0;
    return entries <= 1000 * m->n_classes;
}

TL_COLD int tl_words_fit(tl_model *m, tl_file *file, const tl_value *words)
{
    int64_t ngrams, i, min_count;
    uint64_t last = 0;
    if (words->type != '{' || words->n != 4) return 0;
    if (!tl_find_int(words, "ngrams", &ngrams) || ngrams < 1 || ngrams > 10) return 0;
    if (!tl_find_int(words, "n_buckets", &m->n_buckets)) return 0;
    if (m->n_buckets < 1 || m->n_buckets >= (int64_t)1 << 62) return 0;
    if (!tl_find_int(words, "min_count", &min_count) || min_count < 1) return 0;
    m->mean = tl_find_is(words, "pooling", "mean");
    if (!m->mean && !tl_find_is(words, "pooling", "sum")) return 0;
    m->word_high = (int)ngrams;
    if (!tl_own(file, TL_SLOT_words, TL_I64, 1, &m->words)) return 0;
    if (m->words.n >= 1 << 30 || m->words.n != m->n_features) return 0;
    for (i = 0; i < m->words.n; i++) {
        uint64_t key = tl_u64(m->words.at + 8 * i);
        if (key <= last) return 0;
        if (key % 2 && key >= 2 * (uint64_t)m->n_buckets) return 0;
        last = key;
    }
    return 1;
}

TL_COLD int tl_ascend(const tl_model *m)
{
    int64_t i;
    for (i = 1; i < m->n_classes; i++) {
        int64_t n_a, n_b;
        const uint8_t *a = tl_label_bytes(m, i - 1, &n_a), *b = tl_label_bytes(m, i, &n_b);
        if (m->label_kind == TL_LABEL_TEXT ? tl_bytes_differ(a, n_a, b, n_b) >= 0
            : m->label_kind == TL_LABEL_INT ? tl_i64(a) >= tl_i64(b)
            : m->label_kind == TL_LABEL_FLOAT ? !(tl_f64(a) < tl_f64(b))
                                              : a[0] >= b[0]) return 0;
    }
    return 1;
}

TL_COLD int tl_open_label_tree(tl_model *m, tl_file *file, tl_room *room)
{
    const tl_value *about = &file->metadata;
    tl_value fitted, parameters, v, item;
    const tl_entry *children = &file->entries[TL_SLOT_children];
    const tl_entry *weights = &file->entries[TL_SLOT_weights];
    const tl_entry *bias = &file->entries[TL_SLOT_bias_of_nodes];
    tl_array counts, quality;
    tl_json j;
    double scale;
    int64_t i, version;
    if (!tl_find_int(about, "version", &version) || version != 1) return TL_BAD_VERSION;
    if (!tl_find(about, "fitted", &fitted) || fitted.type != '{') return TL_BAD_JSON;
    if (!tl_find(about, "parameters", &parameters) || parameters.type != '{') return TL_BAD_JSON;
    if (!tl_find(&fitted, "history", &v) || v.type != '[') return TL_BAD_JSON;
    j = v.at;
    j.keys = NULL;
    tl_step_on(&j);
    for (i = 0; i < v.n; i++) {
        tl_skip_blanks(&j);
        if (j.c == ',') tl_step_on(&j);
        tl_skip_blanks(&j);
        if (!tl_json_value(&j, 0, &item) || item.type != '{') return TL_BAD_JSON;
    }
    if (!tl_find_is(about, "estimator", "LabelTreeClassifier")) return TL_BAD_VERSION;
    if (room->at == NULL) return TL_NO_MEMORY;
    if (!tl_find_int(&fitted, "n_classes", &m->n_classes)) return TL_BAD_JSON;
    if (m->n_classes < 1 || m->n_classes > INT32_MAX) return TL_BAD_MODEL;
    if (!tl_labels_fit(m, file, &fitted, *room) || !tl_ascend(m)) return TL_BAD_LABELS;
    if (!tl_own(file, TL_SLOT_U, TL_F32, 2, &m->U)) return TL_BAD_MODEL;
    if (!tl_own(file, TL_SLOT_children, TL_I32, 2, &m->children)) return TL_BAD_MODEL;
    if (!tl_own(file, TL_SLOT_weights, TL_F32, 3, &m->node_weights)) return TL_BAD_MODEL;
    if (!tl_own(file, TL_SLOT_bias_of_nodes, TL_F32, 2, &m->node_bias)) return TL_BAD_MODEL;
    if (!tl_own(file, TL_SLOT_class_count, TL_I64, 1, &counts)) return TL_BAD_MODEL;
    m->n_features = file->entries[TL_SLOT_U].shape[0];
    m->dim = file->entries[TL_SLOT_U].shape[1];
    m->n_nodes = children->shape[0];
    m->arity = children->shape[1];
    m->n_outputs = m->arity > 2 ? m->arity : 1;
    if (m->dim < 1 || m->n_features > INT32_MAX || m->n_nodes > INT32_MAX / 2) return TL_BAD_MODEL;
    if (m->arity < 2 || m->arity > INT32_MAX / 4 || m->dim > INT32_MAX) return TL_BAD_MODEL;
    if ((m->n_nodes == 0) != (m->n_classes == 1)) return TL_BAD_MODEL;
    if (m->n_nodes + m->n_classes > INT32_MAX) return TL_BAD_MODEL;
    if (bias->shape[0] != m->n_nodes || bias->shape[1] != m->n_outputs) return TL_BAD_MODEL;
    if (weights->shape[0] != m->n_nodes || weights->shape[1] != m->n_outputs) return TL_BAD_MODEL;
    if (weights->shape[2] != m->dim || counts.n != m->n_classes) return TL_BAD_MODEL;
    for (i = 0; i < counts.n; i++)
        if (tl_offset(counts, i) < 0) return TL_BAD_MODEL;
    for (i = 0; i < 6; i++) {
        if (!tl_own(file, TL_SLOT_quality + (int)i, i == 4 ? TL_I32 : TL_F64, 1, &quality)) return TL_BAD_MODEL;
        if (quality.n != m->n_nodes) return TL_BAD_MODEL;
    }
    if (!tl_all_finite(m->U, 0, m->U.n) || !tl_all_finite(m->node_weights, 0, m->node_weights.n))
        return TL_BAD_MODEL;
    if (!tl_all_finite(m->node_bias, 0, m->node_bias.n)) return TL_BAD_MODEL;
    if (!tl_children_fit(m, *room)) return TL_BAD_MODEL;
    if (!tl_find_float(&fitted, "scale", &scale) || !(scale > 0.0)) return TL_BAD_JSON;
    m->row_scale = (float)scale;
    m->greedy = 0;
    if (tl_find(&parameters, "search", &v)) {
        m->greedy = tl_is(&v, "greedy");
        if (!m->greedy && !tl_is(&v, "exact")) return TL_BAD_JSON;
    }
    m->text = TL_NO_TEXTS;
    if (!tl_find(&fitted, "words", &v)) return TL_BAD_JSON;
    if (v.type != 'n') {
        if (!tl_words_fit(m, file, &v)) return TL_BAD_TEXT;
        m->text = TL_OK;
    } else if (!tl_features_fit(m, file, &fitted)) return TL_BAD_LABELS;
    m->n_trees = 1;
    m->beam = 1;
    m->checked = 1;
    return tl_sections_fit(file, *room) ? TL_OK : TL_BAD_JSON;
}

TL_API size_t tl_memory_size(const void *data, size_t size)
{
    static const int counted[4] = {TL_SLOT_labels, TL_SLOT_labels_ptr, TL_SLOT_rank, TL_SLOT_child};
    tl_file file;
    tl_room none = {0, 0};
    int64_t n = 0, n_terms, need;
    size_t header;
    int i;
    if (tl_read_header(&file, data, size, none) != TL_OK) return 0;
    header = (size_t)tl_u64((const uint8_t *)data);
    for (i = 0; i < 4; i++)
        if (file.entries[counted[i]].found && file.entries[counted[i]].n_axes > 0 &&
            file.entries[counted[i]].shape[0] > n) n = file.entries[counted[i]].shape[0];
    if (file.entries[TL_SLOT_children].found && file.entries[TL_SLOT_children].n_axes > 0)
        n += file.entries[TL_SLOT_children].shape[0];
    n_terms = file.entries[TL_SLOT_idf].found && file.entries[TL_SLOT_idf].n_axes == 1
                  ? file.entries[TL_SLOT_idf].shape[0]
                  : 0;
    if (n > (int64_t)1 << 40 || n_terms > (int64_t)1 << 40) return 0;
    /* the larger of what is needed for the header, for labels and for terms: one after the other */
    need = 4 * tl_power_of_two(2 * n) + 8 * n + 64;
    if ((int64_t)header * 3 + 256 > need) need = (int64_t)header * 3 + 256;
    if (8 * tl_power_of_two(2 * n_terms) + 64 > need) need = 8 * tl_power_of_two(2 * n_terms) + 64;
    return (uint64_t)need > SIZE_MAX / 2 ? 0 : (size_t)need;
}

TL_API int tl_open(tl_model *m, const void *data, size_t size, void *memory, size_t memory_size)
{
    tl_file file;
    tl_room room = tl_room_in(memory, memory_size);
    int status;
    size_t i;
    for (i = 0; i < sizeof *m; i++) ((uint8_t *)m)[i] = 0;
    m->text = TL_NO_TEXTS;
    status = tl_read_header(&file, data, size, room);
    if (status == TL_OK && memory != NULL && memory_size < tl_memory_size(data, size)) status = TL_NO_MEMORY;
    if (status != TL_OK) return status;
    if (tl_find_is(&file.metadata, "format", "thinleaf model")) {
        m->kind = TL_TREE;
        status = tl_open_tree(m, &file, &room);
    } else if (tl_find_is(&file.metadata, "format", "thinleaf label tree")) {
        m->kind = TL_LABEL_TREE;
        status = tl_open_label_tree(m, &file, &room);
    } else status = TL_BAD_VERSION;
    if (status != TL_OK) m->n_classes = 0; /* nothing can be predicted with it */
    return status;
}

TL_API size_t tl_model_size(void) { return sizeof(tl_model); }

TL_API int tl_check(tl_model *m)
{
    int64_t leaf;
    if (m->n_classes < 1) return TL_BAD_MODEL;
    if (m->checked) return TL_OK;
    for (leaf = 0; leaf < m->n_leaves; leaf++)
        if (!tl_leaf_is_valid(m, leaf)) return TL_BAD_LEAF;
    m->checked = 1;
    return TL_OK;
}

TL_API const char *tl_label_text(const tl_model *m, int32_t id, size_t *length)
{
    int64_t n = 0;
    const uint8_t *p = NULL;
    if (m->label_kind == TL_LABEL_TEXT && id >= 0 && id < m->n_classes) p = tl_label_bytes(m, id, &n);
    *length = (size_t)n;
    return (const char *)p;
}

TL_API int64_t tl_label_int(const tl_model *m, int32_t id)
{
    if (id < 0 || id >= m->n_classes || m->label_kind == TL_LABEL_TEXT) return 0;
    if (m->label_kind == TL_LABEL_BOOL) return m->labels.at[id];
    return m->label_kind == TL_LABEL_INT ? tl_offset(m->labels, id) : 0;
}

TL_API double tl_label_float(const tl_model *m, int32_t id)
{
    if (id < 0 || id >= m->n_classes || m->label_kind != TL_LABEL_FLOAT) return 0.0;
    return tl_long_number(m->labels, id);
}

TL_API const char *tl_error(int status)
{
    static const char *const messages[] = {
        "no error",
        "this is no model file, or it is damaged",
        "the header or the metadata of the file are damaged",
        "the file has a format or a version that this program does not know: update it",
        "the file is damaged: its arrays are no model",
        "the file is damaged: a leaf holds ids or weights out of range",
        "the file is damaged: its labels or names",
        "the file is damaged: what it says of texts",
        "the memory for the model is too small",
        "the scratch memory is too small for this input",
        "a row has another number of features than the model",
        "an index is not the number of a feature",
        "a text is not valid UTF-8",
        "the model takes rows, or texts in a way that only Python knows",
        "there is no such number of classes, tree or kind of input",
    };
    return status > 0 || status < TL_BAD_ARGUMENT ? "unknown error" : messages[-status];
}

/* -- texts --------------------------------------------------------------------------------------- */

#ifndef TL_ASCII_ONLY
/* -- tables of Unicode 14.0.0, made by native/_tables.py */
static const uint16_t tl_word[][2] = {
  {170, 170}, {178, 179}, {181, 181}, {185, 186}, {188, 190}, {192, 214}, {216, 246},
  {248, 705}, {710, 721}, {736, 740}, {748, 748}, {750, 750}, {880, 884}, {886, 887},
  {890, 893}, {895, 895}, {902, 902}, {904, 906}, {908, 908}, {910, 929}, {931, 1013},
  {1015, 1153}, {1162, 1327}, {1329, 1366}, {1369, 1369}, {1376, 1416}, {1488, 1514},
  {1519, 1522}, {1568, 1610}, {1632, 1641}, {1646, 1647}, {1649, 1747}, {1749, 1749},
  {1765, 1766}, {1774, 1788}, {1791, 1791}, {1808, 1808}, {1810, 1839}, {1869, 1957},
  {1969, 1969}, {1984, 2026}, {2036, 2037}, {2042, 2042}, {2048, 2069}, {2074, 2074},
  {2084, 2084}, {2088, 2088}, {2112, 2136}, {2144, 2154}, {2160, 2183}, {2185, 2190},
  {2208, 2249}, {2308, 2361}, {2365, 2365}, {2384, 2384}, {2392, 2401}, {2406, 2415},
  {2417, 2432}, {2437, 2444}, {2447, 2448}, {2451, 2472}, {2474, 2480}, {2482, 2482},
  {2486, 2489}, {2493, 2493}, {2510, 2510}, {2524, 2525}, {2527, 2529}, {2534, 2545},
  {2548, 2553}, {2556, 2556}, {2565, 2570}, {2575, 2576}, {2579, 2600}, {2602, 2608},
  {2610, 2611}, {2613, 2614}, {2616, 2617}, {2649, 2652}, {2654, 2654}, {2662, 2671},
  {2674, 2676}, {2693, 2701}, {2703, 2705}, {2707, 2728}, {2730, 2736}, {2738, 2739},
  {2741, 2745}, {2749, 2749}, {2768, 2768}, {2784, 2785}, {2790, 2799}, {2809, 2809},
  {2821, 2828}, {2831, 2832}, {2835, 2856}, {2858, 2864}, {2866, 2867}, {2869, 2873},
  {2877, 2877}, {2908, 2909}, {2911, 2913}, {2918, 2927}, {2929, 2935}, {2947, 2947},
  {2949, 2954}, {2958, 2960}, {2962, 2965}, {2969, 2970}, {2972, 2972}, {2974, 2975},
  {2979, 2980}, {2984, 2986}, {2990, 3001}, {3024, 3024}, {3046, 3058}, {3077, 3084},
  {3086, 3088}, {3090, 3112}, {3114, 3129}, {3133, 3133}, {3160, 3162}, {3165, 3165},
  {3168, 3169}, {3174, 3183}, {3192, 3198}, {3200, 3200}, {3205, 3212}, {3214, 3216},
  {3218, 3240}, {3242, 3251}, {3253, 3257}, {3261, 3261}, {3293, 3294}, {3296, 3297},
  {3302, 3311}, {3313, 3314}, {3332, 3340}, {3342, 3344}, {3346, 3386}, {3389, 3389},
  {3406, 3406}, {3412, 3414}, {3416, 3425}, {3430, 3448}, {3450, 3455}, {3461, 3478},
  {3482, 3505}, {3507, 3515}, {3517, 3517}, {3520, 3526}, {3558, 3567}, {3585, 3632},
  {3634, 3635}, {3648, 3654}, {3664, 3673}, {3713, 3714}, {3716, 3716}, {3718, 3722},
  {3724, 3747}, {3749, 3749}, {3751, 3760}, {3762, 3763}, {3773, 3773}, {3776, 3780},
  {3782, 3782}, {3792, 3801}, {3804, 3807}, {3840, 3840}, {3872, 3891}, {3904, 3911},
  {3913, 3948}, {3976, 3980}, {4096, 4138}, {4159, 4169}, {4176, 4181}, {4186, 4189},
  {4193, 4193}, {4197, 4198}, {4206, 4208}, {4213, 4225}, {4238, 4238}, {4240, 4249},
  {4256, 4293}, {4295, 4295}, {4301, 4301}, {4304, 4346}, {4348, 4680}, {4682, 4685},
  {4688, 4694}, {4696, 4696}, {4698, 4701}, {4704, 4744}, {4746, 4749}, {4752, 4784},
  {4786, 4789}, {4792, 4798}, {4800, 4800}, {4802, 4805}, {4808, 4822}, {4824, 4880},
  {4882, 4885}, {4888, 4954}, {4969, 4988}, {4992, 5007}, {5024, 5109}, {5112, 5117},
  {5121, 5740}, {5743, 5759}, {5761, 5786}, {5792, 5866}, {5870, 5880}, {5888, 5905},
  {5919, 5937}, {5952, 5969}, {5984, 5996}, {5998, 6000}, {6016, 6067}, {6103, 6103},
  {6108, 6108}, {6112, 6121}, {6128, 6137}, {6160, 6169}, {6176, 6264}, {6272, 6276},
  {6279, 6312}, {6314, 6314}, {6320, 6389}, {6400, 6430}, {6470, 6509}, {6512, 6516},
  {6528, 6571}, {6576, 6601}, {6608, 6618}, {6656, 6678}, {6688, 6740}, {6784, 6793},
  {6800, 6809}, {6823, 6823}, {6917, 6963}, {6981, 6988}, {6992, 7001}, {7043, 7072},
  {7086, 7141}, {7168, 7203}, {7232, 7241}, {7245, 7293}, {7296, 7304}, {7312, 7354},
  {7357, 7359}, {7401, 7404}, {7406, 7411}, {7413, 7414}, {7418, 7418}, {7424, 7615},
  {7680, 7957}, {7960, 7965}, {7968, 8005}, {8008, 8013}, {8016, 8023}, {8025, 8025},
  {8027, 8027}, {8029, 8029}, {8031, 8061}, {8064, 8116}, {8118, 8124}, {8126, 8126},
  {8130, 8132}, {8134, 8140}, {8144, 8147}, {8150, 8155}, {8160, 8172}, {8178, 8180},
  {8182, 8188}, {8304, 8305}, {8308, 8313}, {8319, 8329}, {8336, 8348}, {8450, 8450},
  {8455, 8455}, {8458, 8467}, {8469, 8469}, {8473, 8477}, {8484, 8484}, {8486, 8486},
  {8488, 8488}, {8490, 8493}, {8495, 8505}, {8508, 8511}, {8517, 8521}, {8526, 8526},
  {8528, 8585}, {9312, 9371}, {9450, 9471}, {10102, 10131}, {11264, 11492}, {11499, 11502},
  {11506, 11507}, {11517, 11517}, {11520, 11557}, {11559, 11559}, {11565, 11565},
  {11568, 11623}, {11631, 11631}, {11648, 11670}, {11680, 11686}, {11688, 11694},
  {11696, 11702}, {11704, 11710}, {11712, 11718}, {11720, 11726}, {11728, 11734},
  {11736, 11742}, {11823, 11823}, {12293, 12295}, {12321, 12329}, {12337, 12341},
  {12344, 12348}, {12353, 12438}, {12445, 12447}, {12449, 12538}, {12540, 12543},
  {12549, 12591}, {12593, 12686}, {12690, 12693}, {12704, 12735}, {12784, 12799},
  {12832, 12841}, {12872, 12879}, {12881, 12895}, {12928, 12937}, {12977, 12991},
  {13312, 19903}, {19968, 42124}, {42192, 42237}, {42240, 42508}, {42512, 42539},
  {42560, 42606}, {42623, 42653}, {42656, 42735}, {42775, 42783}, {42786, 42888},
  {42891, 42954}, {42960, 42961}, {42963, 42963}, {42965, 42969}, {42994, 43009},
  {43011, 43013}, {43015, 43018}, {43020, 43042}, {43056, 43061}, {43072, 43123},
  {43138, 43187}, {43216, 43225}, {43250, 43255}, {43259, 43259}, {43261, 43262},
  {43264, 43301}, {43312, 43334}, {43360, 43388}, {43396, 43442}, {43471, 43481},
  {43488, 43492}, {43494, 43518}, {43520, 43560}, {43584, 43586}, {43588, 43595},
  {43600, 43609}, {43616, 43638}, {43642, 43642}, {43646, 43695}, {43697, 43697},
  {43701, 43702}, {43705, 43709}, {43712, 43712}, {43714, 43714}, {43739, 43741},
  {43744, 43754}, {43762, 43764}, {43777, 43782}, {43785, 43790}, {43793, 43798},
  {43808, 43814}, {43816, 43822}, {43824, 43866}, {43868, 43881}, {43888, 44002},
  {44016, 44025}, {44032, 55203}, {55216, 55238}, {55243, 55291}, {63744, 64109},
  {64112, 64217}, {64256, 64262}, {64275, 64279}, {64285, 64285}, {64287, 64296},
  {64298, 64310}, {64312, 64316}, {64318, 64318}, {64320, 64321}, {64323, 64324},
  {64326, 64433}, {64467, 64829}, {64848, 64911}, {64914, 64967}, {65008, 65019},
  {65136, 65140}, {65142, 65276}, {65296, 65305}, {65313, 65338}, {65345, 65370},
  {65382, 65470}, {65474, 65479}, {65482, 65487}, {65490, 65495}, {65498, 65500}, {0, 11},
  {13, 38}, {40, 58}, {60, 61}, {63, 77}, {80, 93}, {128, 250}, {263, 307}, {320, 376},
  {394, 395}, {640, 668}, {672, 720}, {737, 763}, {768, 803}, {813, 842}, {848, 885},
  {896, 925}, {928, 963}, {968, 975}, {977, 981}, {1024, 1181}, {1184, 1193}, {1200, 1235},
  {1240, 1275}, {1280, 1319}, {1328, 1379}, {1392, 1402}, {1404, 1418}, {1420, 1426},
  {1428, 1429}, {1431, 1441}, {1443, 1457}, {1459, 1465}, {1467, 1468}, {1536, 1846},
  {1856, 1877}, {1888, 1895}, {1920, 1925}, {1927, 1968}, {1970, 1978}, {2048, 2053},
  {2056, 2056}, {2058, 2101}, {2103, 2104}, {2108, 2108}, {2111, 2133}, {2136, 2166},
  {2169, 2206}, {2215, 2223}, {2272, 2290}, {2292, 2293}, {2299, 2331}, {2336, 2361},
  {2432, 2487}, {2492, 2511}, {2514, 2560}, {2576, 2579}, {2581, 2583}, {2585, 2613},
  {2624, 2632}, {2656, 2686}, {2688, 2719}, {2752, 2759}, {2761, 2788}, {2795, 2799},
  {2816, 2869}, {2880, 2901}, {2904, 2930}, {2936, 2961}, {2985, 2991}, {3072, 3144},
  {3200, 3250}, {3264, 3314}, {3322, 3363}, {3376, 3385}, {3680, 3710}, {3712, 3753},
  {3760, 3761}, {3840, 3879}, {3888, 3909}, {3921, 3924}, {3952, 3969}, {4016, 4043},
  {4064, 4086}, {4099, 4151}, {4178, 4207}, {4209, 4210}, {4213, 4213}, {4227, 4271},
  {4304, 4328}, {4336, 4345}, {4355, 4390}, {4406, 4415}, {4420, 4420}, {4423, 4423},
  {4432, 4466}, {4470, 4470}, {4483, 4530}, {4545, 4548}, {4560, 4570}, {4572, 4572},
  {4577, 4596}, {4608, 4625}, {4627, 4651}, {4736, 4742}, {4744, 4744}, {4746, 4749},
  {4751, 4765}, {4767, 4776}, {4784, 4830}, {4848, 4857}, {4869, 4876}, {4879, 4880},
  {4883, 4904}, {4906, 4912}, {4914, 4915}, {4917, 4921}, {4925, 4925}, {4944, 4944},
  {4957, 4961}, {5120, 5172}, {5191, 5194}, {5200, 5209}, {5215, 5217}, {5248, 5295},
  {5316, 5317}, {5319, 5319}, {5328, 5337}, {5504, 5550}, {5592, 5595}, {5632, 5679},
  {5700, 5700}, {5712, 5721}, {5760, 5802}, {5816, 5816}, {5824, 5833}, {5888, 5914},
  {5936, 5947}, {5952, 5958}, {6144, 6187}, {6304, 6386}, {6399, 6406}, {6409, 6409},
  {6412, 6419}, {6421, 6422}, {6424, 6447}, {6463, 6463}, {6465, 6465}, {6480, 6489},
  {6560, 6567}, {6570, 6608}, {6625, 6625}, {6627, 6627}, {6656, 6656}, {6667, 6706},
  {6714, 6714}, {6736, 6736}, {6748, 6793}, {6813, 6813}, {6832, 6904}, {7168, 7176},
  {7178, 7214}, {7232, 7232}, {7248, 7276}, {7282, 7311}, {7424, 7430}, {7432, 7433},
  {7435, 7472}, {7494, 7494}, {7504, 7513}, {7520, 7525}, {7527, 7528}, {7530, 7561},
  {7576, 7576}, {7584, 7593}, {7904, 7922}, {8112, 8112}, {8128, 8148}, {8192, 9113},
  {9216, 9326}, {9344, 9539}, {12176, 12272}, {12288, 13358}, {17408, 17990}, {26624, 27192},
  {27200, 27230}, {27232, 27241}, {27248, 27326}, {27328, 27337}, {27344, 27373},
  {27392, 27439}, {27456, 27459}, {27472, 27481}, {27483, 27489}, {27491, 27511},
  {27517, 27535}, {28224, 28310}, {28416, 28490}, {28496, 28496}, {28563, 28575},
  {28640, 28641}, {28643, 28643}, {28672, 34807}, {34816, 36053}, {36096, 36104},
  {45040, 45043}, {45045, 45051}, {45053, 45054}, {45056, 45346}, {45392, 45394},
  {45412, 45415}, {45424, 45819}, {48128, 48234}, {48240, 48252}, {48256, 48264},
  {48272, 48281}, {53984, 54003}, {54112, 54136}, {54272, 54356}, {54358, 54428},
  {54430, 54431}, {54434, 54434}, {54437, 54438}, {54441, 54444}, {54446, 54457},
  {54459, 54459}, {54461, 54467}, {54469, 54533}, {54535, 54538}, {54541, 54548},
  {54550, 54556}, {54558, 54585}, {54587, 54590}, {54592, 54596}, {54598, 54598},
  {54602, 54608}, {54610, 54949}, {54952, 54976}, {54978, 55002}, {55004, 55034},
  {55036, 55060}, {55062, 55092}, {55094, 55118}, {55120, 55150}, {55152, 55176},
  {55178, 55208}, {55210, 55234}, {55236, 55243}, {55246, 55295}, {57088, 57118},
  {57600, 57644}, {57655, 57661}, {57664, 57673}, {57678, 57678}, {58000, 58029},
  {58048, 58091}, {58096, 58105}, {59360, 59366}, {59368, 59371}, {59373, 59374},
  {59376, 59390}, {59392, 59588}, {59591, 59599}, {59648, 59715}, {59723, 59723},
  {59728, 59737}, {60529, 60587}, {60589, 60591}, {60593, 60596}, {60673, 60717},
  {60719, 60733}, {60928, 60931}, {60933, 60959}, {60961, 60962}, {60964, 60964},
  {60967, 60967}, {60969, 60978}, {60980, 60983}, {60985, 60985}, {60987, 60987},
  {60994, 60994}, {60999, 60999}, {61001, 61001}, {61003, 61003}, {61005, 61007},
  {61009, 61010}, {61012, 61012}, {61015, 61015}, {61017, 61017}, {61019, 61019},
  {61021, 61021}, {61023, 61023}, {61025, 61026}, {61028, 61028}, {61031, 61034},
  {61036, 61042}, {61044, 61047}, {61049, 61052}, {61054, 61054}, {61056, 61065},
  {61067, 61083}, {61089, 61091}, {61093, 61097}, {61099, 61115}, {61696, 61708},
  {64496, 64505}, {0, 42719}, {42752, 46904}, {46912, 47133}, {47136, 52897}, {52912, 60384},
  {63488, 64029}, {0, 4938},
};
static const uint16_t tl_word_planes[18] = {
  0, 417, 723, 729, 730, 730, 730, 730, 730, 730, 730, 730, 730, 730, 730, 730, 730, 730,
};
static const uint16_t tl_space[][2] = {
  {133, 133}, {160, 160}, {5760, 5760}, {8192, 8202}, {8232, 8233}, {8239, 8239}, {8287, 8287},
  {12288, 12288},
};
static const uint16_t tl_space_planes[18] = {
  0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
};
static const uint16_t tl_cased[][2] = {
  {170, 170}, {181, 181}, {186, 186}, {192, 214}, {216, 246}, {248, 442}, {444, 447},
  {452, 659}, {661, 687}, {880, 883}, {886, 887}, {891, 893}, {895, 895}, {902, 902},
  {904, 906}, {908, 908}, {910, 929}, {931, 1013}, {1015, 1153}, {1162, 1327}, {1329, 1366},
  {1376, 1416}, {4256, 4293}, {4295, 4295}, {4301, 4301}, {4304, 4346}, {4349, 4351},
  {5024, 5109}, {5112, 5117}, {7296, 7304}, {7312, 7354}, {7357, 7359}, {7424, 7467},
  {7531, 7543}, {7545, 7578}, {7680, 7957}, {7960, 7965}, {7968, 8005}, {8008, 8013},
  {8016, 8023}, {8025, 8025}, {8027, 8027}, {8029, 8029}, {8031, 8061}, {8064, 8116},
  {8118, 8124}, {8126, 8126}, {8130, 8132}, {8134, 8140}, {8144, 8147}, {8150, 8155},
  {8160, 8172}, {8178, 8180}, {8182, 8188}, {8450, 8450}, {8455, 8455}, {8458, 8467},
  {8469, 8469}, {8473, 8477}, {8484, 8484}, {8486, 8486}, {8488, 8488}, {8490, 8493},
  {8495, 8500}, {8505, 8505}, {8508, 8511}, {8517, 8521}, {8526, 8526}, {8544, 8575},
  {8579, 8580}, {9398, 9449}, {11264, 11387}, {11390, 11492}, {11499, 11502}, {11506, 11507},
  {11520, 11557}, {11559, 11559}, {11565, 11565}, {42560, 42605}, {42624, 42651},
  {42786, 42863}, {42865, 42887}, {42891, 42894}, {42896, 42954}, {42960, 42961},
  {42963, 42963}, {42965, 42969}, {42997, 42998}, {43002, 43002}, {43824, 43866},
  {43872, 43880}, {43888, 43967}, {64256, 64262}, {64275, 64279}, {65313, 65338},
  {65345, 65370}, {1024, 1103}, {1200, 1235}, {1240, 1275}, {1392, 1402}, {1404, 1418},
  {1420, 1426}, {1428, 1429}, {1431, 1441}, {1443, 1457}, {1459, 1465}, {1467, 1468},
  {3200, 3250}, {3264, 3314}, {6304, 6367}, {28224, 28287}, {54272, 54356}, {54358, 54428},
  {54430, 54431}, {54434, 54434}, {54437, 54438}, {54441, 54444}, {54446, 54457},
  {54459, 54459}, {54461, 54467}, {54469, 54533}, {54535, 54538}, {54541, 54548},
  {54550, 54556}, {54558, 54585}, {54587, 54590}, {54592, 54596}, {54598, 54598},
  {54602, 54608}, {54610, 54949}, {54952, 54976}, {54978, 55002}, {55004, 55034},
  {55036, 55060}, {55062, 55092}, {55094, 55118}, {55120, 55150}, {55152, 55176},
  {55178, 55208}, {55210, 55234}, {55236, 55243}, {57088, 57097}, {57099, 57118},
  {59648, 59715}, {61744, 61769}, {61776, 61801}, {61808, 61833},
};
static const uint16_t tl_cased_planes[18] = {
  0, 96, 147, 147, 147, 147, 147, 147, 147, 147, 147, 147, 147, 147, 147, 147, 147, 147,
};
static const uint16_t tl_ignorable[][2] = {
  {168, 168}, {173, 173}, {175, 175}, {180, 180}, {183, 184}, {688, 879}, {884, 885},
  {890, 890}, {900, 901}, {903, 903}, {1155, 1161}, {1369, 1369}, {1375, 1375}, {1425, 1469},
  {1471, 1471}, {1473, 1474}, {1476, 1477}, {1479, 1479}, {1524, 1524}, {1536, 1541},
  {1552, 1562}, {1564, 1564}, {1600, 1600}, {1611, 1631}, {1648, 1648}, {1750, 1757},
  {1759, 1768}, {1770, 1773}, {1807, 1807}, {1809, 1809}, {1840, 1866}, {1958, 1968},
  {2027, 2037}, {2042, 2042}, {2045, 2045}, {2070, 2093}, {2137, 2139}, {2184, 2184},
  {2192, 2193}, {2200, 2207}, {2249, 2306}, {2362, 2362}, {2364, 2364}, {2369, 2376},
  {2381, 2381}, {2385, 2391}, {2402, 2403}, {2417, 2417}, {2433, 2433}, {2492, 2492},
  {2497, 2500}, {2509, 2509}, {2530, 2531}, {2558, 2558}, {2561, 2562}, {2620, 2620},
  {2625, 2626}, {2631, 2632}, {2635, 2637}, {2641, 2641}, {2672, 2673}, {2677, 2677},
  {2689, 2690}, {2748, 2748}, {2753, 2757}, {2759, 2760}, {2765, 2765}, {2786, 2787},
  {2810, 2815}, {2817, 2817}, {2876, 2876}, {2879, 2879}, {2881, 2884}, {2893, 2893},
  {2901, 2902}, {2914, 2915}, {2946, 2946}, {3008, 3008}, {3021, 3021}, {3072, 3072},
  {3076, 3076}, {3132, 3132}, {3134, 3136}, {3142, 3144}, {3146, 3149}, {3157, 3158},
  {3170, 3171}, {3201, 3201}, {3260, 3260}, {3263, 3263}, {3270, 3270}, {3276, 3277},
  {3298, 3299}, {3328, 3329}, {3387, 3388}, {3393, 3396}, {3405, 3405}, {3426, 3427},
  {3457, 3457}, {3530, 3530}, {3538, 3540}, {3542, 3542}, {3633, 3633}, {3636, 3642},
  {3654, 3662}, {3761, 3761}, {3764, 3772}, {3782, 3782}, {3784, 3789}, {3864, 3865},
  {3893, 3893}, {3895, 3895}, {3897, 3897}, {3953, 3966}, {3968, 3972}, {3974, 3975},
  {3981, 3991}, {3993, 4028}, {4038, 4038}, {4141, 4144}, {4146, 4151}, {4153, 4154},
  {4157, 4158}, {4184, 4185}, {4190, 4192}, {4209, 4212}, {4226, 4226}, {4229, 4230},
  {4237, 4237}, {4253, 4253}, {4348, 4348}, {4957, 4959}, {5906, 5908}, {5938, 5939},
  {5970, 5971}, {6002, 6003}, {6068, 6069}, {6071, 6077}, {6086, 6086}, {6089, 6099},
  {6103, 6103}, {6109, 6109}, {6155, 6159}, {6211, 6211}, {6277, 6278}, {6313, 6313},
  {6432, 6434}, {6439, 6440}, {6450, 6450}, {6457, 6459}, {6679, 6680}, {6683, 6683},
  {6742, 6742}, {6744, 6750}, {6752, 6752}, {6754, 6754}, {6757, 6764}, {6771, 6780},
  {6783, 6783}, {6823, 6823}, {6832, 6862}, {6912, 6915}, {6964, 6964}, {6966, 6970},
  {6972, 6972}, {6978, 6978}, {7019, 7027}, {7040, 7041}, {7074, 7077}, {7080, 7081},
  {7083, 7085}, {7142, 7142}, {7144, 7145}, {7149, 7149}, {7151, 7153}, {7212, 7219},
  {7222, 7223}, {7288, 7293}, {7376, 7378}, {7380, 7392}, {7394, 7400}, {7405, 7405},
  {7412, 7412}, {7416, 7417}, {7468, 7530}, {7544, 7544}, {7579, 7679}, {8125, 8125},
  {8127, 8129}, {8141, 8143}, {8157, 8159}, {8173, 8175}, {8189, 8190}, {8203, 8207},
  {8216, 8217}, {8228, 8228}, {8231, 8231}, {8234, 8238}, {8288, 8292}, {8294, 8303},
  {8305, 8305}, {8319, 8319}, {8336, 8348}, {8400, 8432}, {11388, 11389}, {11503, 11505},
  {11631, 11631}, {11647, 11647}, {11744, 11775}, {11823, 11823}, {12293, 12293},
  {12330, 12333}, {12337, 12341}, {12347, 12347}, {12441, 12446}, {12540, 12542},
  {40981, 40981}, {42232, 42237}, {42508, 42508}, {42607, 42610}, {42612, 42621},
  {42623, 42623}, {42652, 42655}, {42736, 42737}, {42752, 42785}, {42864, 42864},
  {42888, 42890}, {42994, 42996}, {43000, 43001}, {43010, 43010}, {43014, 43014},
  {43019, 43019}, {43045, 43046}, {43052, 43052}, {43204, 43205}, {43232, 43249},
  {43263, 43263}, {43302, 43309}, {43335, 43345}, {43392, 43394}, {43443, 43443},
  {43446, 43449}, {43452, 43453}, {43471, 43471}, {43493, 43494}, {43561, 43566},
  {43569, 43570}, {43573, 43574}, {43587, 43587}, {43596, 43596}, {43632, 43632},
  {43644, 43644}, {43696, 43696}, {43698, 43700}, {43703, 43704}, {43710, 43711},
  {43713, 43713}, {43741, 43741}, {43756, 43757}, {43763, 43764}, {43766, 43766},
  {43867, 43871}, {43881, 43883}, {44005, 44005}, {44008, 44008}, {44013, 44013},
  {64286, 64286}, {64434, 64450}, {65024, 65039}, {65043, 65043}, {65056, 65071},
  {65106, 65106}, {65109, 65109}, {65279, 65279}, {65287, 65287}, {65294, 65294},
  {65306, 65306}, {65342, 65342}, {65344, 65344}, {65392, 65392}, {65438, 65439},
  {65507, 65507}, {65529, 65531}, {509, 509}, {736, 736}, {886, 890}, {1920, 1925},
  {1927, 1968}, {1970, 1978}, {2561, 2563}, {2565, 2566}, {2572, 2575}, {2616, 2618},
  {2623, 2623}, {2789, 2790}, {3364, 3367}, {3755, 3756}, {3910, 3920}, {3970, 3973},
  {4097, 4097}, {4152, 4166}, {4208, 4208}, {4211, 4212}, {4223, 4225}, {4275, 4278},
  {4281, 4282}, {4285, 4285}, {4290, 4290}, {4301, 4301}, {4352, 4354}, {4391, 4395},
  {4397, 4404}, {4467, 4467}, {4480, 4481}, {4534, 4542}, {4553, 4556}, {4559, 4559},
  {4655, 4657}, {4660, 4660}, {4662, 4663}, {4670, 4670}, {4831, 4831}, {4835, 4842},
  {4864, 4865}, {4923, 4924}, {4928, 4928}, {4966, 4972}, {4976, 4980}, {5176, 5183},
  {5186, 5188}, {5190, 5190}, {5214, 5214}, {5299, 5304}, {5306, 5306}, {5311, 5312},
  {5314, 5315}, {5554, 5557}, {5564, 5565}, {5567, 5568}, {5596, 5597}, {5683, 5690},
  {5693, 5693}, {5695, 5696}, {5803, 5803}, {5805, 5805}, {5808, 5813}, {5815, 5815},
  {5917, 5919}, {5922, 5925}, {5927, 5931}, {6191, 6199}, {6201, 6202}, {6459, 6460},
  {6462, 6462}, {6467, 6467}, {6612, 6615}, {6618, 6619}, {6624, 6624}, {6657, 6666},
  {6707, 6712}, {6715, 6718}, {6727, 6727}, {6737, 6742}, {6745, 6747}, {6794, 6806},
  {6808, 6809}, {7216, 7222}, {7224, 7229}, {7231, 7231}, {7314, 7335}, {7338, 7344},
  {7346, 7347}, {7349, 7350}, {7473, 7478}, {7482, 7482}, {7484, 7485}, {7487, 7493},
  {7495, 7495}, {7568, 7569}, {7573, 7573}, {7575, 7575}, {7923, 7924}, {13360, 13368},
  {27376, 27380}, {27440, 27446}, {27456, 27459}, {28495, 28495}, {28559, 28575},
  {28640, 28641}, {28643, 28644}, {45040, 45043}, {45045, 45051}, {45053, 45054},
  {48285, 48286}, {48288, 48291}, {52992, 53037}, {53040, 53062}, {53607, 53609},
  {53619, 53634}, {53637, 53643}, {53674, 53677}, {53826, 53828}, {55808, 55862},
  {55867, 55916}, {55925, 55925}, {55940, 55940}, {55963, 55967}, {55969, 55983},
  {57344, 57350}, {57352, 57368}, {57371, 57377}, {57379, 57380}, {57382, 57386},
  {57648, 57661}, {58030, 58030}, {58092, 58095}, {59600, 59606}, {59716, 59723},
  {62459, 62463}, {1, 1}, {32, 127}, {256, 495},
};
static const uint16_t tl_ignorable_planes[18] = {
  0, 283, 419, 419, 419, 419, 419, 419, 419, 419, 419, 419, 419, 419, 419, 422, 422, 422,
};
static const uint16_t tl_lower[][2] = {
  {192, 214}, {216, 222}, {256, 302}, {306, 310}, {313, 327}, {330, 374}, {376, 376},
  {377, 381}, {385, 385}, {386, 388}, {390, 390}, {391, 391}, {393, 394}, {395, 395},
  {398, 398}, {399, 399}, {400, 400}, {401, 401}, {403, 403}, {404, 404}, {406, 406},
  {407, 407}, {408, 408}, {412, 412}, {413, 413}, {415, 415}, {416, 420}, {422, 422},
  {423, 423}, {425, 425}, {428, 428}, {430, 430}, {431, 431}, {433, 434}, {435, 437},
  {439, 439}, {440, 440}, {444, 444}, {452, 452}, {453, 453}, {455, 455}, {456, 456},
  {458, 458}, {459, 475}, {478, 494}, {497, 497}, {498, 500}, {502, 502}, {503, 503},
  {504, 542}, {544, 544}, {546, 562}, {570, 570}, {571, 571}, {573, 573}, {574, 574},
  {577, 577}, {579, 579}, {580, 580}, {581, 581}, {582, 590}, {880, 882}, {886, 886},
  {895, 895}, {902, 902}, {904, 906}, {908, 908}, {910, 911}, {913, 929}, {932, 939},
  {975, 975}, {984, 1006}, {1012, 1012}, {1015, 1015}, {1017, 1017}, {1018, 1018}, {1021, 1023},
  {1024, 1039}, {1040, 1071}, {1120, 1152}, {1162, 1214}, {1216, 1216}, {1217, 1229},
  {1232, 1326}, {1329, 1366}, {4256, 4293}, {4295, 4295}, {4301, 4301}, {5024, 5103},
  {5104, 5109}, {7312, 7354}, {7357, 7359}, {7680, 7828}, {7838, 7838}, {7840, 7934},
  {7944, 7951}, {7960, 7965}, {7976, 7983}, {7992, 7999}, {8008, 8013}, {8025, 8031},
  {8040, 8047}, {8072, 8079}, {8088, 8095}, {8104, 8111}, {8120, 8121}, {8122, 8123},
  {8124, 8124}, {8136, 8139}, {8140, 8140}, {8152, 8153}, {8154, 8155}, {8168, 8169},
  {8170, 8171}, {8172, 8172}, {8184, 8185}, {8186, 8187}, {8188, 8188}, {8486, 8486},
  {8490, 8490}, {8491, 8491}, {8498, 8498}, {8544, 8559}, {8579, 8579}, {9398, 9423},
  {11264, 11311}, {11360, 11360}, {11362, 11362}, {11363, 11363}, {11364, 11364},
  {11367, 11371}, {11373, 11373}, {11374, 11374}, {11375, 11375}, {11376, 11376},
  {11378, 11378}, {11381, 11381}, {11390, 11391}, {11392, 11490}, {11499, 11501},
  {11506, 11506}, {42560, 42604}, {42624, 42650}, {42786, 42798}, {42802, 42862},
  {42873, 42875}, {42877, 42877}, {42878, 42886}, {42891, 42891}, {42893, 42893},
  {42896, 42898}, {42902, 42920}, {42922, 42922}, {42923, 42923}, {42924, 42924},
  {42925, 42925}, {42926, 42926}, {42928, 42928}, {42929, 42929}, {42930, 42930},
  {42931, 42931}, {42932, 42946}, {42948, 42948}, {42949, 42949}, {42950, 42950},
  {42951, 42953}, {42960, 42960}, {42966, 42968}, {42997, 42997}, {65313, 65338}, {1024, 1063},
  {1200, 1235}, {1392, 1402}, {1404, 1418}, {1420, 1426}, {1428, 1429}, {3200, 3250},
  {6304, 6335}, {28224, 28255}, {59648, 59681},
};
static const uint16_t tl_lower_planes[18] = {
  0, 170, 180, 180, 180, 180, 180, 180, 180, 180, 180, 180, 180, 180, 180, 180, 180, 180,
};
/* what is added, doubled, plus one if only every other character of a run changes */
static const int32_t tl_lower_add[] = {
  64, 64, 3, 3, 3, 3, -241, 3, 421, 3, 413, 3, 410, 3, 159, 405, 407, 3, 411, 415, 423, 419, 3,
  423, 427, 429, 3, 437, 3, 437, 3, 437, 3, 434, 3, 439, 3, 3, 5, 3, 5, 3, 5, 3, 3, 5, 3, -193,
  -111, 3, -259, 3, 21591, 3, -325, 21585, 3, -389, 139, 143, 3, 3, 3, 233, 77, 74, 129, 126,
  64, 64, 17, 3, -119, 3, -13, 3, -260, 160, 64, 3, 3, 31, 3, 3, 96, 14528, 14529, 14529, 77728,
  16, -6016, -6016, 3, -15229, 3, -16, -16, -16, -16, -16, -15, -16, -16, -16, -16, -16, -148,
  -17, -172, -17, -16, -200, -16, -224, -13, -256, -252, -17, -15033, -16765, -16523, 57, 32, 3,
  52, 96, 3, -21485, -7627, -21453, 3, -21559, -21497, -21565, -21563, 3, 3, -21630, 3, 3, 3, 3,
  3, 3, 3, 3, -70663, 3, 3, -84559, 3, 3, -84615, -84637, -84629, -84609, -84615, -84515,
  -84563, -84521, 1857, 3, -95, -84613, -70767, 3, 3, 3, 3, 64, 80, 80, 78, 78, 78, 78, 128, 64,
  64, 68,
};
/* -- end of the tables */

/* Which run of a table a character lies in, or -1. */
TL_ONCE int tl_run_of(const uint16_t (*runs)[2], const uint16_t *planes, uint32_t code)
{
    int low = planes[code >> 16], begin = low, high = planes[(code >> 16) + 1];
    while (low < high) { /* the first run that begins behind it */
        int middle = (low + high) / 2;
        if (runs[middle][0] <= (code & 0xFFFF)) low = middle + 1;
        else high = middle;
    }
    return low > begin && (code & 0xFFFF) <= runs[low - 1][1] ? low - 1 : -1;
}

#define TL_AMONG(table, code) (tl_run_of(table, table##_planes, code) >= 0)

static inline int tl_is_ignorable(uint32_t code)
{
    if (code < 128) return code == '\'' || code == '.' || code == ':' || code == '^' || code == '`';
    return TL_AMONG(tl_ignorable, code);
}

static inline int tl_is_cased(uint32_t code)
{
    if (code < 128) return (code | 32) >= 'a' && (code | 32) <= 'z';
    return TL_AMONG(tl_cased, code);
}

/* Whether a capital sigma at `at` ends a word: after a letter, and not before one. */
static inline int tl_is_final(const uint8_t *text, size_t n, size_t at)
{
    size_t i = at;
    uint32_t code = 0;
    int found = 0;
    while (i > 0 && !found) {
        do i -= 1;
        while (i > 0 && (text[i] & 0xC0) == 0x80);
        tl_decode(text + i, n - i, &code);
        found = !tl_is_ignorable(code);
    }
    if (!found || !tl_is_cased(code)) return 0;
    for (i = at + 2, found = 0; i < n && !found;) {
        int width = tl_decode(text + i, n - i, &code);
        if (width == 0) return 0; /* who called finds out */
        i += (size_t)width;
        found = !tl_is_ignorable(code);
    }
    return !found || !tl_is_cased(code);
}

static inline uint32_t tl_lower_of(uint32_t code)
{
    int run = tl_run_of(tl_lower, tl_lower_planes, code);
    int32_t add = run < 0 ? 0 : tl_lower_add[run];
    if ((add & 1) && ((code - tl_lower[run][0]) & 1)) return code;
    return code + (uint32_t)((add - (add & 1)) / 2);
}
#endif

/* Copy a text in lower case; returns its bytes, or TL_BAD_UTF8. It can grow by a half. */
TL_ONCE int64_t tl_lower_case(const uint8_t *text, size_t n, uint8_t *out)
{
    size_t at = 0, end = 0;
    while (at < n) {
        uint8_t c = text[at];
        if (c < 0x80) {
            out[end++] = (uint8_t)(c >= 'A' && c <= 'Z' ? c + 32 : c);
            at += 1;
            continue;
        }
#ifdef TL_ASCII_ONLY
        return TL_BAD_UTF8;
#else
        {
            uint32_t code = 0;
            int width = tl_decode(text + at, n - at, &code);
            if (width == 0) return TL_BAD_UTF8;
            if (code == 0x130) {
                out[end++] = 'i';
                code = 0x307;
            } else if (code == 0x3A3) code = tl_is_final(text, n, at) ? 0x3C2 : 0x3C3;
            else code = tl_lower_of(code);
            end += (size_t)tl_encode(code, out + end);
            at += (size_t)width;
        }
#endif
    }
    return (int64_t)end;
}

enum { TL_OTHER, TL_WORD, TL_SPACE };

static inline int tl_kind_of(uint32_t code)
{
    static const uint8_t ascii[128] = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2,
        2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0,
        0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1,
        0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0,
    };
    if (code < 128) return ascii[code];
#ifndef TL_ASCII_ONLY
    if (TL_AMONG(tl_word, code)) return TL_WORD;
    if (TL_AMONG(tl_space, code)) return TL_SPACE;
#endif
    return TL_OTHER;
}

/* Memory for one text at a time. */
typedef struct tl_reader {
    const uint8_t *text; /* in lower case */
    int64_t n;
    uint8_t *buffer; /* its words, one space apart */
    uint32_t *spans; /* where each begins and ends */
    uint64_t *found;   /* features of n-grams; then hashes of those that are still to be looked up, */
    uint64_t *grams;   /* and where these begin and end */
    int64_t n_found, n_pending;
} tl_reader;

/* The most n-grams of a text of so many bytes. */
static inline uint64_t tl_most_grams(const tl_model *m, uint64_t n)
{
    uint64_t words = m->word_high > 0 ? (n / 2 + 1) * (uint64_t)(m->word_high - m->word_low + 1) : 0;
    uint64_t chars = m->char_high > 0 ? (n + 2) * (uint64_t)(m->char_high - m->char_low + 1) : 0;
    return words + chars;
}

#define TL_LONGEST_TEXT ((size_t)1 << 30)

static inline size_t tl_text_size(const tl_model *m, size_t n_bytes)
{
    uint64_t n = n_bytes + n_bytes / 2 + 8, most = tl_most_grams(m, n);
    uint64_t size = TL_ROUNDED(n) + TL_ROUNDED(n + 16) + 8 * (n / 2 + 2);
    if (m->kind == TL_LABEL_TREE) size += 8 * (n / 2 + 2);
    else size += 3 * 8 * most + 64;
    return size > SIZE_MAX / 4 ? SIZE_MAX / 4 : (size_t)size;
}

TL_ONCE int tl_start_reading(const tl_model *m, tl_input in, tl_room *room, tl_reader *r)
{
    uint64_t n = in.n + in.n / 2 + 8, most;
    uint8_t *lower;
    if (m->text != TL_OK) return m->text;
    if (in.n > TL_LONGEST_TEXT) return TL_NO_SCRATCH;
    lower = (uint8_t *)tl_take(room, n, 1);
    r->buffer = (uint8_t *)tl_take(room, n + 16, 1);
    r->spans = (uint32_t *)tl_take(room, n / 2 + 2, 8);
    most = m->kind == TL_LABEL_TREE ? n / 2 + 2 : tl_most_grams(m, n);
    r->found = (uint64_t *)tl_take(room, most, 8);
    r->grams = m->kind == TL_LABEL_TREE ? r->found : (uint64_t *)tl_take(room, most, 8);
    if (r->found == NULL || r->grams == NULL || r->spans == NULL || r->buffer == NULL || lower == NULL)
        return TL_NO_SCRATCH;
    r->n = tl_lower_case((const uint8_t *)in.at, in.n, lower);
    r->text = lower;
    r->n_found = r->n_pending = 0;
    return r->n < 0 ? TL_BAD_UTF8 : TL_OK;
}

/* Copy the words of a text, one space apart; fill in where each stands and return their number. */
TL_ONCE int64_t tl_read_words(tl_reader *r)
{
    int64_t at = 0, n_words = 0;
    uint32_t end = 0;
    int inside = 0;
    while (at < r->n) {
        uint32_t code = r->text[at];
        int width = code < 0x80 ? 1 : tl_decode(r->text + at, (size_t)(r->n - at), &code), i;
        if (tl_kind_of(code) == TL_WORD) {
            if (!inside) {
                if (n_words > 0) r->buffer[end++] = ' ';
                r->spans[2 * n_words] = end;
            }
            r->buffer[end++] = r->text[at];
            for (i = 1; i < width; i++) r->buffer[end++] = r->text[at + i];
            inside = 1;
        } else if (inside) {
            r->spans[2 * n_words++ + 1] = end;
            inside = 0;
        }
        at += width;
    }
    if (inside) r->spans[2 * n_words++ + 1] = end;
    return n_words;
}

/* Copy what white space separates, one space apart, with a space at either end. */
static inline int64_t tl_read_pieces(tl_reader *r)
{
    int64_t at = 0, end = 0;
    int inside = 0;
    while (at < r->n) {
        uint32_t code = r->text[at];
        int width = code < 0x80 ? 1 : tl_decode(r->text + at, (size_t)(r->n - at), &code), i;
        if (tl_kind_of(code) == TL_SPACE) inside = 0;
        else {
            if (!inside) r->buffer[end++] = ' ';
            inside = 1;
            for (i = 0; i < width; i++) r->buffer[end++] = r->text[at + i];
        }
        at += width;
    }
    if (end > 0) r->buffer[end++] = ' ';
    return end;
}

static inline uint32_t tl_rotated(uint32_t a, int n) { return (a << n) | (a >> (32 - n)); }

/* MurmurHash3, x86, 32 bits, seed 0. */
static inline uint32_t tl_murmur(const uint8_t *p, int64_t n)
{
    uint32_t h = 0, k = 0;
    int64_t i, whole = n - n % 4;
    for (i = 0; i < whole; i += 4) {
        h ^= tl_rotated(tl_u32(p + i) * 0xCC9E2D51u, 15) * 0x1B873593u;
        h = tl_rotated(h, 13) * 5 + 0xE6546B64u;
    }
    for (i = n; i-- > whole;) k = (k << 8) | p[i];
    h ^= tl_rotated(k * 0xCC9E2D51u, 15) * 0x1B873593u;
    h ^= (uint32_t)n;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    return h ^ (h >> 16);
}

static inline int tl_bytes_equal(const uint8_t *a, const uint8_t *b, int64_t n)
{
    for (; n >= 8; n -= 8, a += 8, b += 8)
        if (tl_u64(a) != tl_u64(b)) return 0;
    for (; n > 0; n--)
        if (*a++ != *b++) return 0;
    return 1;
}

/* Note an n-gram: the feature of its hash, or that it is to be looked up. */
TL_ONCE void tl_note_gram(const tl_model *m, tl_reader *r, int64_t begin, int64_t end, int chars)
{
    const uint8_t *gram = r->buffer + begin;
    int64_t n = end - begin, at = r->n_found + r->n_pending;
    uint64_t h;
    if (m->hashing) {
        uint32_t code = tl_murmur(gram, n);
        uint64_t positive = !m->has_signs || code < 0x80000000u;
        if (code >= 0x80000000u) code = 0u - code;
        r->found[r->n_found++] = ((uint64_t)(code & (uint32_t)(m->n_buckets - 1)) << 32) | positive;
        return;
    }
    h = tl_hash(gram, n, (uint64_t)chars);
    TL_FETCH(m->slots + (h & (uint64_t)(m->n_slots - 1)));
    r->found[at] = h;
    r->grams[at] = ((uint64_t)begin << 32) | (uint64_t)end;
    r->n_pending += 1;
}

/* Look up all n-grams that were noted, and keep those that are known. An entry has the feature in its
 * upper half. */
TL_ONCE void tl_look_up(const tl_model *m, tl_reader *r, int chars)
{
    int64_t mask = m->n_slots - 1, i = r->n_found, stop = i + r->n_pending, at;
    for (; i < stop; i++) {
        uint64_t h = r->found[i], slot;
        int64_t begin = (int64_t)(r->grams[i] >> 32), n = (int64_t)(r->grams[i] & 0xFFFFFFFFu) - begin;
        for (at = (int64_t)(h & (uint64_t)mask); (slot = m->slots[at]) != 0; at = (at + 1) & mask) {
            int64_t term = (int64_t)(slot & 0xFFFFFFFFu) - 1, start;
            if (slot >> 32 != h >> 32 || (term >= m->n_word_terms) != chars) continue;
            start = tl_offset(m->term_ptr, term);
            if (tl_offset(m->term_ptr, term + 1) - start != n) continue;
            if (!tl_bytes_equal(r->buffer + begin, m->terms.at + start, n)) continue;
            if (m->sparse) TL_FETCH(m->router_ptr.at + 8 * term);
            TL_FETCH(m->idf.at + 4 * term);
            r->found[r->n_found++] = (uint64_t)term << 32;
            break;
        }
    }
    r->n_pending = 0;
}

static inline int tl_width_of(uint8_t first) { return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

/* Note the sequences of characters within a word and the spaces around it. */
static inline void tl_note_chars(const tl_model *m, tl_reader *r, int64_t size)
{
    int64_t word = 0, stop, begin;
    for (; word + 1 < size; word = stop) {
        for (stop = word + 1; r->buffer[stop] != ' ';) stop += 1;
        for (begin = word; begin <= stop; begin += tl_width_of(r->buffer[begin])) {
            int64_t end = begin;
            int length = 0;
            while (length < m->char_high && end < stop + 1) {
                end += tl_width_of(r->buffer[end]);
                length += 1;
                if (length >= m->char_low || (begin == word && end == stop + 1))
                    tl_note_gram(m, r, begin, end, 1);
            }
        }
    }
}

/* Sort entries by feature. */
TL_ONCE void tl_sort_entries(uint64_t *a, int64_t n)
{
    int64_t i, at;
    if (n > 64) {
        tl_sort(a, (size_t)n);
        return;
    }
    for (i = 1; i < n; i++) {
        uint64_t v = a[i];
        for (at = i; at > 0 && a[at - 1] > v; at--) a[at] = a[at - 1];
        a[at] = v;
    }
}

/* Make a row of a text in the scratch. */
TL_ONCE int tl_read_row(const tl_model *m, tl_input in, tl_room *room, tl_row *row)
{
    tl_reader r;
    int64_t i, n_words, size = 0, n_of_words = 0;
    int32_t *idx;
    float *val;
    double words = 0.0, chars = 0.0, share;
    int status = tl_start_reading(m, in, room, &r);
    if (status != TL_OK) return status;
    if (m->word_high > 0) {
        int64_t j;
        n_words = tl_read_words(&r);
        for (i = 0; i < n_words; i++)
            for (j = i + m->word_low - 1; j < i + m->word_high && j < n_words; j++)
                tl_note_gram(m, &r, r.spans[2 * i], r.spans[2 * j + 1], 0);
        tl_look_up(m, &r, 0);
    }
    if (m->char_high > 0) {
        tl_note_chars(m, &r, tl_read_pieces(&r));
        tl_look_up(m, &r, 1);
    }
    idx = (int32_t *)tl_take(room, (uint64_t)r.n_found, 4);
    val = (float *)tl_take(room, (uint64_t)r.n_found, 4);
    if (idx == NULL || val == NULL) return TL_NO_SCRATCH;
    tl_sort_entries(r.found, r.n_found);
    for (i = 0; i < r.n_found;) {
        uint64_t term = r.found[i] >> 32;
        int64_t count = 0;
        float v;
        for (; i < r.n_found && r.found[i] >> 32 == term; i++) count += !m->hashing || (r.found[i] & 1) ? 1 : -1;
        v = (float)count;
        if (!m->hashing) {
            float tf = count == 1 ? 1.0f : (float)tl_log((double)count) + 1.0f;
            v = tf * tl_number(m->idf, (int64_t)term);
        }
        idx[size] = (int32_t)term;
        val[size++] = v;
        if ((int64_t)term < m->n_word_terms) {
            words += (double)(v * v);
            n_of_words = size;
        } else chars += (double)(v * v);
    }
    share = words > 0.0 && chars > 0.0 ? 0.7071067811865476 : 1.0;
    words = TL_SQRT(words) / share;
    chars = TL_SQRT(chars) / share;
    for (i = 0; i < size; i++) {
        double length = i < n_of_words ? words : chars;
        if (length > 0.0) val[i] = (float)((double)val[i] / length);
    }
    row->idx = idx;
    row->val = val;
    row->n = size;
    return TL_OK;
}

TL_API int64_t tl_row_of_text(const tl_model *m, tl_input in, int32_t *indices, float *values,
                              int64_t max, void *scratch, size_t scratch_size)
{
    tl_room room = tl_room_in(scratch, scratch_size);
    tl_row row = {0, 0, 0, 0, 0, 0};
    int64_t i;
    int status;
    if (in.kind != TL_TEXT || m->kind != TL_TREE || m->n_classes < 1) return TL_BAD_ARGUMENT;
    status = tl_read_row(m, in, &room, &row);
    if (status != TL_OK) return status;
    for (i = 0; i < row.n && i < max; i++) {
        indices[i] = row.idx[i];
        values[i] = row.val[i];
    }
    return row.n <= max ? row.n : (int64_t)TL_NO_SCRATCH;
}

/* -- rows and routers ---------------------------------------------------------------------------- */

#define TL_N_TOP 128 /* for each path: seven levels of a tree */

static inline int64_t tl_n_paths(const tl_model *m)
{
    int64_t n = m->n_trees * m->beam; /* a tree has no more paths than leaves */
    return n < m->n_leaves ? n : m->n_leaves;
}

static inline int64_t tl_n_top(const tl_model *m)
{
    int64_t n = m->n_trees * m->beam;
    if (!m->sparse) return 0;
    return n > m->n_nodes / TL_N_TOP ? m->n_nodes : TL_N_TOP * n;
}

static inline int64_t tl_n_mixed(const tl_model *m)
{
    int64_t paths = tl_n_paths(m), each = m->max_classes + m->max_extra;
    return each > m->n_classes / paths ? m->n_classes : paths * each;
}

/* A weight of routers for sparse rows. */
TL_SMALL float tl_router_weight(const tl_model *m, int64_t at, int kind)
{
    return kind == TL_FLOAT32 ? tl_number(m->router_val, at) : tl_half(tl_u16(m->router_val.at + 2 * at));
}

/* Add the weights of the first routers, whose numbers and weights are of a type. */
TL_SMALL void tl_add_top(const tl_model *m, tl_row *row, int size, int kind)
{
    int64_t t;
    for (t = 0; t < row->n; t++) {
        int64_t at = tl_offset(m->router_ptr, row->idx[t]);
        int64_t end = tl_offset(m->router_ptr, (int64_t)row->idx[t] + 1);
        float x = row->val[t];
        for (; at < end; at++) {
            int32_t router = tl_id(m->router_idx, at, size);
            if (router >= row->n_top) break;
            row->top[router] += x * tl_router_weight(m, at, kind);
        }
    }
}

/* Routers near the root: all weights of a feature stand together, so that it is cheaper to add up
 * those of all of these routers than to look for the few on the path. */
TL_ONCE void tl_score_top(const tl_model *m, tl_row *row)
{
    int64_t node, t, width = m->router_weights == TL_FLOAT16 ? 2 : 4;
    for (t = 0; t < row->n; t++) TL_FETCH(m->router_ptr.at + 8 * (int64_t)row->idx[t]);
    for (node = 0; node < row->n_top; node++) row->top[node] = 0.0f;
    for (t = 0; t < row->n; t++) {
        int64_t at = tl_offset(m->router_ptr, row->idx[t]);
        TL_FETCH(m->router_idx.at + m->node_size * at);
        TL_FETCH(m->router_val.at + width * at);
    }
    if (m->node_size == 4) tl_add_top(m, row, 4, TL_FLOAT32);
    else tl_add_top(m, row, 2, m->router_weights);
}

/* Bring an input into the form that the model's layout wants. */
static inline int tl_make_row(const tl_model *m, tl_input in, tl_room *room, tl_row *row)
{
    int64_t i, n = (int64_t)in.n;
    int status;
    row->x = NULL;
    row->top = NULL;
    row->n = row->n_top = 0;
    if (in.kind == TL_TEXT) {
        status = tl_read_row(m, in, room, row);
        if (status != TL_OK) return status;
    } else if (in.kind == TL_DENSE) {
        if (n != m->n_features) return TL_WRONG_WIDTH;
        row->x = (const float *)in.at;
        if (!m->sparse) return TL_OK;
        {
            int32_t *idx = (int32_t *)tl_take(room, (uint64_t)n, 4);
            float *val = (float *)tl_take(room, (uint64_t)n, 4);
            if (idx == NULL || val == NULL) return TL_NO_SCRATCH;
            for (i = 0; i < n; i++) {
                if (row->x[i] == 0.0f) continue;
                idx[row->n] = (int32_t)i;
                val[row->n++] = row->x[i];
            }
            row->idx = idx;
            row->val = val;
        }
    } else if (in.kind == TL_PAIRS) {
        row->idx = (const int32_t *)in.at;
        row->val = in.values;
        row->n = n;
        for (i = 0; i < n; i++)
            if (row->idx[i] < 0 || row->idx[i] >= m->n_features) return TL_BAD_FEATURE;
    } else return TL_BAD_ARGUMENT;
    if (m->sparse) {
        row->n_top = tl_n_top(m);
        row->top = (float *)tl_take(room, (uint64_t)row->n_top, 4);
        if (row->top == NULL) return TL_NO_SCRATCH;
        tl_score_top(m, row);
    } else {
        float *x = (float *)tl_take(room, (uint64_t)m->n_features, 4);
        if (x == NULL) return TL_NO_SCRATCH;
        for (i = 0; i < m->n_features; i++) x[i] = 0.0f;
        for (i = 0; i < row->n; i++) x[row->idx[i]] += row->val[i];
        row->x = x;
    }
    return TL_OK;
}

/* The dot product in eight lanes: one vector register, or two. */
static inline float tl_dot(const float *TL_RESTRICT x, const uint8_t *TL_RESTRICT w, int64_t n)
{
    float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f, e = 0.0f, f = 0.0f, g = 0.0f, h = 0.0f, total;
    int64_t t, whole = n - n % 8;
    for (t = 0; t < whole; t += 8) {
        const uint8_t *v = w + 4 * t;
        a += x[t] * tl_f32(v);
        b += x[t + 1] * tl_f32(v + 4);
        c += x[t + 2] * tl_f32(v + 8);
        d += x[t + 3] * tl_f32(v + 12);
        e += x[t + 4] * tl_f32(v + 16);
        f += x[t + 5] * tl_f32(v + 20);
        g += x[t + 6] * tl_f32(v + 24);
        h += x[t + 7] * tl_f32(v + 28);
    }
    total = ((a + b) + (c + d)) + ((e + f) + (g + h));
    for (t = whole; t < n; t++) total += x[t] * tl_f32(w + 4 * t);
    return total;
}

/* The first position in ids[begin:end], ascending, whose id is not below the one that is wanted. */
TL_SMALL int64_t tl_search(tl_array ids, int width, int64_t begin, int64_t end, int32_t wanted)
{
    int64_t size = end - begin;
    while (size > 1) {
        int64_t half = size / 2;
        begin += tl_id(ids, begin + half - 1, width) < wanted ? half : 0;
        size -= half;
    }
    return size == 1 && tl_id(ids, begin, width) < wanted ? begin + 1 : begin;
}

/* w.x of a router whose weights stand by feature, if numbers of nodes have a size. */
TL_SMALL float tl_score_by_feature(const tl_model *m, const tl_row *row, int64_t node, int size)
{
    int64_t t, at, end;
    float total = 0.0f;
    for (t = 0; t < row->n; t++) {
        end = tl_offset(m->router_ptr, (int64_t)row->idx[t] + 1);
        at = tl_search(m->router_idx, size, tl_offset(m->router_ptr, row->idx[t]), end, (int32_t)node);
        if (at < end && tl_id(m->router_idx, at, size) == node)
            total += row->val[t] * tl_router_weight(m, at, size == 4 ? TL_FLOAT32 : m->router_weights);
    }
    return total;
}

TL_ONCE float tl_sparse_score(const tl_model *m, const tl_row *row, int64_t node)
{
    return m->node_size == 4 ? tl_score_by_feature(m, row, node, 4) : tl_score_by_feature(m, row, node, 2);
}

/* w.x + b of a router: the logarithmic odds of going right. */
static inline float tl_router_score(const tl_model *m, const tl_row *row, int64_t node)
{
    int64_t at = tl_int(m->dense_at, node), t, end;
    float total = 0.0f;
    if (at < 0 && node < row->n_top) total = row->top[node];
    else if (at >= 0) {
        const uint8_t *w = m->dense_val.at + 4 * at * m->n_features;
        if (!m->sparse) total = tl_dot(row->x, w, m->n_features);
        else
            for (t = 0; t < row->n; t++) total += row->val[t] * tl_f32(w + 4 * (int64_t)row->idx[t]);
    } else if (!m->sparse) {
        end = tl_offset(m->router_ptr, node + 1);
        for (t = tl_offset(m->router_ptr, node); t < end; t++)
            total += row->x[tl_int(m->router_idx, t)] * tl_number(m->router_val, t);
    } else total = tl_sparse_score(m, row, node);
    return total + tl_number(m->bias, node);
}

static inline int64_t tl_descend(const tl_model *m, const tl_row *row, int64_t node)
{
    int32_t child;
    while ((child = tl_int(m->child, node)) >= 0)
        node = (int64_t)child + (tl_router_score(m, row, node) >= 0.0f ? 1 : 0);
    return -1 - (int64_t)child;
}

/* -- paths and mixtures -------------------------------------------------------------------------- */

/* Where a row's paths end, and the mixture of the leaves there. */
typedef struct tl_mixture {
    int64_t *leaves;
    double *weights;
    int64_t n_paths;
    int64_t *nodes; /* of paths on their way */
    double *logs;
    float *scores;
    int32_t *ids, *lookup;
    double *p, *own, rest;
    int64_t n, n_held, max, n_lookup; /* of the n classes, those that leaves hold come first */
} tl_mixture;

static inline size_t tl_mixture_size(const tl_model *m)
{
    int64_t paths = tl_n_paths(m), mixed = tl_n_mixed(m);
    size_t size = 16 * (size_t)paths + 32 * (size_t)m->beam + TL_ROUNDED(4 * m->max_classes);
    size += 8 * (size_t)m->max_classes;
    return size + TL_ROUNDED(4 * mixed) + 8 * (size_t)mixed + TL_ROUNDED(4 * tl_power_of_two(2 * mixed)) + 64;
}

TL_ONCE int tl_take_mixture(const tl_model *m, tl_room *room, tl_mixture *mix)
{
    int64_t paths = tl_n_paths(m);
    mix->max = tl_n_mixed(m);
    mix->n_lookup = tl_power_of_two(2 * mix->max);
    mix->leaves = (int64_t *)tl_take(room, (uint64_t)paths, 8);
    mix->weights = (double *)tl_take(room, (uint64_t)paths, 8);
    mix->nodes = (int64_t *)tl_take(room, 2 * (uint64_t)m->beam, 8);
    mix->logs = (double *)tl_take(room, 2 * (uint64_t)m->beam, 8);
    mix->scores = (float *)tl_take(room, (uint64_t)m->max_classes, 4);
    mix->ids = (int32_t *)tl_take(room, (uint64_t)mix->max, 4);
    mix->p = (double *)tl_take(room, (uint64_t)mix->max, 8);
    mix->lookup = (int32_t *)tl_take(room, (uint64_t)mix->n_lookup, 4);
    mix->own = (double *)tl_take(room, (uint64_t)m->max_classes, 8);
    mix->n = 0;
    return mix->own != NULL && mix->lookup != NULL && mix->p != NULL && mix->ids != NULL && mix->scores != NULL &&
           mix->logs != NULL && mix->nodes != NULL && mix->weights != NULL && mix->leaves != NULL;
}

/* Path p goes on to the right, and another one to the left. */
TL_SMALL void tl_branch(int64_t *nodes, double *logs, int64_t p, int64_t left, int64_t other, double score,
                        double soft)
{
    nodes[other] = left;
    logs[other] = logs[p] + ((score > 0.0 ? -score : 0.0) - soft);
    nodes[p] = left + 1;
    logs[p] += (score < 0.0 ? score : 0.0) - soft;
}

/* Fill in the leaves of the most probable paths of a tree and their probabilities, which are scaled
 * to sum to one; return how many. All paths go down a level together, and the best live on. */
static inline int64_t tl_beam_search(const tl_model *m, const tl_row *row, int64_t root,
                                     tl_mixture *mix, int64_t *leaves, double *weights)
{
    int64_t *nodes = mix->nodes, n = 1, p;
    double *logs = mix->logs, mass = 0.0;
    int going = tl_int(m->child, root) >= 0;
    nodes[0] = root;
    logs[0] = 0.0;
    while (going) {
        int64_t total = n;
#ifdef __OPTIMIZE_SIZE__
        for (p = 0; p < n; p++) {
            int64_t left = tl_int(m->child, nodes[p]);
            if (left >= 0) {
                double score = m->sharpness * (double)tl_router_score(m, row, nodes[p]);
                double soft = tl_log1p(tl_exp(score < 0.0 ? score : -score));
                tl_branch(nodes, logs, p, left, total++, score, soft);
            }
        }
#else
        int64_t from, to;
        for (from = 0; from < n; from = to) {
            double score[TL_TOGETHER], soft[TL_TOGETHER];
            int n_going = 0, i = 0;
            for (to = from; to < n && n_going < TL_TOGETHER; to++) {
                if (tl_int(m->child, nodes[to]) < 0) continue;
                soft[n_going] = score[n_going] = m->sharpness * (double)tl_router_score(m, row, nodes[to]);
                n_going += 1;
            }
            tl_soften(soft, n_going);
            for (p = from; p < to; p++) {
                int64_t left = tl_int(m->child, nodes[p]);
                if (left < 0) continue;
                tl_branch(nodes, logs, p, left, total++, score[i], soft[i]);
                i += 1;
            }
        }
#endif
        for (p = 1; p < total; p++) { /* by insertion: where few paths still go on, few move */
            int64_t node = nodes[p], at = p;
            double log = logs[p];
            for (; at > 0 && logs[at - 1] < log; at--) {
                nodes[at] = nodes[at - 1];
                logs[at] = logs[at - 1];
            }
            nodes[at] = node;
            logs[at] = log;
        }
        n = total < m->beam ? total : m->beam;
        going = 0;
        for (p = 0; p < n; p++) going |= tl_int(m->child, nodes[p]) >= 0;
    }
    for (p = 0; p < n; p++) {
        leaves[p] = -1 - (int64_t)tl_int(m->child, nodes[p]);
        weights[p] = tl_exp(logs[p] - logs[0]);
        mass += weights[p];
    }
    for (p = 0; p < n; p++) weights[p] /= mass;
    return n;
}

static inline void tl_find_paths(const tl_model *m, const tl_row *row, tl_mixture *mix)
{
    int64_t root, p, n = 0;
    for (root = 0; root < m->n_trees; root++) {
        int64_t own = 1;
        mix->weights[n] = 1.0;
        if (m->beam == 1) mix->leaves[n] = tl_descend(m, row, root);
        else own = tl_beam_search(m, row, root, mix, mix->leaves + n, mix->weights + n);
        for (p = n; p < n + own; p++)
            mix->weights[p] = m->beam == 1 ? 1.0 / (double)m->n_trees : mix->weights[p] / (double)m->n_trees;
        n += own;
    }
    mix->n_paths = n;
}

/* Where the probability of a class is; its entry begins with what the prior gives. */
static inline double *tl_place_of(const tl_model *m, tl_mixture *mix, int32_t id)
{
    int64_t mask = mix->n_lookup - 1, at = ((int64_t)id * 40503) & mask;
    while (mix->lookup[at] != 0 && mix->ids[mix->lookup[at] - 1] != id) at = (at + 1) & mask;
    if (mix->lookup[at] == 0) {
        mix->ids[mix->n] = id;
        mix->p[mix->n++] = mix->rest * tl_long_number(m->prior, id);
        mix->lookup[at] = (int32_t)mix->n;
    }
    return mix->p + mix->lookup[at] - 1;
}

static inline int64_t tl_argmax(const float *scores, int64_t k)
{
    int64_t best = 0, c;
    for (c = 1; c < k; c++)
        if (scores[c] > scores[best]) best = c;
    return best;
}

/* The mixture of the leaves of a row. If it is not smooth, classes outside a leaf get nothing. */
TL_ONCE int tl_mix(const tl_model *m, const tl_row *row, tl_mixture *mix, int smooth)
{
    int64_t i, t, c;
    tl_find_paths(m, row, mix);
    mix->rest = 0.0;
    for (i = 0; i < mix->n_paths; i++) {
        if (!m->checked && !tl_leaf_is_valid(m, mix->leaves[i])) return TL_BAD_LEAF;
        if (smooth) mix->rest += mix->weights[i] * tl_long_number(m->outside, mix->leaves[i]);
    }
    for (i = 0; i < mix->n_lookup; i++) mix->lookup[i] = 0;
    for (i = 0; i < mix->n_paths; i++) {
        int64_t leaf = mix->leaves[i], first = tl_offset(m->class_ptr, leaf);
        int64_t k = tl_score_leaf(m, row, leaf, mix->scores);
        double share = mix->weights[i] * (smooth ? tl_long_number(m->inside, leaf) : 1.0), total = 0.0;
        double missing = smooth ? mix->weights[i] * tl_long_number(m->outside, leaf) : 0.0;
        tl_exps(mix->scores, (double)mix->scores[tl_argmax(mix->scores, k)], mix->own, k);
        for (c = 0; c < k; c++) total += mix->own[c];
        for (c = 0; c < k; c++) {
            int32_t id = tl_int(m->class_ids, first + c);
            double *p = tl_place_of(m, mix, id);
            *p -= missing * tl_long_number(m->prior, id); /* what others would get */
            *p += share * (mix->own[c] / total);
        }
    }
    mix->n_held = mix->n;
    for (i = 0; smooth && i < mix->n_paths; i++) {
        int64_t leaf = mix->leaves[i], end = tl_offset(m->extra_ptr, leaf + 1);
        double missing = mix->weights[i] * tl_long_number(m->outside, leaf);
        for (t = tl_offset(m->extra_ptr, leaf); t < end; t++)
            *tl_place_of(m, mix, tl_int(m->extra_ids, t)) += missing * tl_long_number(m->extra, t);
    }
    for (c = 0; c < mix->n; c++) /* what is left of a difference can be just below zero */
        if (mix->p[c] < 0.0) mix->p[c] = 0.0;
    return TL_OK;
}

/* The mixture of an input, in the scratch. */
TL_SMALL int tl_mix_input(const tl_model *m, tl_input in, tl_mixture *mix, int smooth, tl_room room)
{
    tl_row row;
    int status = tl_make_row(m, in, &room, &row);
    if (status != TL_OK) return status;
    if (!tl_take_mixture(m, &room, mix)) return TL_NO_SCRATCH;
    return tl_mix(m, &row, mix, smooth);
}

#ifndef __OPTIMIZE_SIZE__
#define TL_UNDECIDED INT32_MIN

/* Replace scores by e^(score - the highest), in float; return their sum. */
static inline double tl_votes(float *TL_RESTRICT x, int64_t k)
{
    float lane[8], top;
    double total = 0.0;
    int64_t c, end;
    int i;
    for (i = 0; i < 8; i++) lane[i] = x[0];
    for (c = 0; c + 8 <= k; c += 8)
        for (i = 0; i < 8; i++) lane[i] = x[c + i] > lane[i] ? x[c + i] : lane[i];
    for (i = 0; c < k; c++, i++) lane[i] = x[c] > lane[i] ? x[c] : lane[i];
    for (top = lane[0], i = 1; i < 8; i++) top = lane[i] > top ? lane[i] : top;
    for (c = 0; c < k; c++) x[c] = tl_exp32_below(x[c] - top);
    for (c = 0; c + 8 <= k;) { /* few at a time in float */
        for (i = 0; i < 8; i++) lane[i] = 0.0f;
        for (end = c + 256; c + 8 <= k && c < end; c += 8)
            for (i = 0; i < 8; i++) lane[i] += x[c + i];
        total += (double)(((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7])));
    }
    for (; c < k; c++) total += (double)x[c];
    return total;
}

/* Double the table of places of classes. */
static inline void tl_widen(tl_mixture *mix)
{
    int64_t mask, at, i;
    mix->n_lookup *= 2;
    mask = mix->n_lookup - 1;
    for (i = 0; i <= mask; i++) mix->lookup[i] = 0;
    for (i = 0; i < mix->n; i++) {
        for (at = ((int64_t)mix->ids[i] * 40503) & mask; mix->lookup[at] != 0;) at = (at + 1) & mask;
        mix->lookup[at] = (int32_t)(i + 1);
    }
}

/* The class that the leaves of a row's paths alone make the most probable, or that they leave it open.
 * It ends as soon as neither leaves that have not been asked nor what leaves give to classes outside
 * them could change the result. */
TL_ONCE int32_t tl_vote(const tl_model *m, const tl_row *row, tl_mixture *mix)
{
    double top_prior = tl_long_number(m->prior, tl_int(m->rank, 0)), unasked = 1.0, beside = 0.0, faint;
    int64_t n_lookup = mix->n_lookup, n = m->n_trees, i, c;
    int32_t found = TL_UNDECIDED;
    if (m->beam > 1) {
        tl_find_paths(m, row, mix);
        n = mix->n_paths;
    }
    faint = 0.01 / (double)n; /* smaller votes are left out, so that few classes get some */
    mix->n_lookup = tl_power_of_two(16 * n); /* it is widened as needed */
    if (mix->n_lookup > n_lookup) mix->n_lookup = n_lookup;
    for (c = 0; c < mix->n_lookup; c++) mix->lookup[c] = 0;
    mix->n = 0;
    mix->rest = 0.0;
    for (i = 0; i < n && found == TL_UNDECIDED; i++) {
        int64_t leaf = m->beam > 1 ? mix->leaves[i] : tl_descend(m, row, i), first, e, k;
        double weight = m->beam > 1 ? mix->weights[i] : 1.0 / (double)n, most = top_prior;
        double share, scale, least, others, best = 0.0, second = 0.0;
        if (!m->checked && !tl_leaf_is_valid(m, leaf)) {
            found = TL_BAD_LEAF;
            break;
        }
        first = tl_offset(m->class_ptr, leaf);
        share = weight * tl_long_number(m->inside, leaf);
        k = tl_score_leaf(m, row, leaf, mix->scores);
        scale = share / tl_votes(mix->scores, k);
        least = faint / scale;
        least = least < 1.0 ? least : 2.0; /* no vote is above one: none is left */
        for (c = 0; c < k; c++) {
            if (!(mix->scores[c] >= (float)least)) continue;
            if (2 * mix->n + 2 > mix->n_lookup && mix->n_lookup < n_lookup) tl_widen(mix);
            *tl_place_of(m, mix, tl_int(m->class_ids, first + c)) += scale * (double)mix->scores[c];
        }
        e = tl_offset(m->extra_ptr, leaf);
        if (e < tl_offset(m->extra_ptr, leaf + 1)) { /* the first is the most probable */
            others = tl_long_number(m->prior, tl_int(m->extra_ids, e)) + tl_long_number(m->extra, e);
            if (others > most) most = others;
        }
        others = weight * tl_long_number(m->outside, leaf) * most;
        share = share < faint ? share : faint; /* of votes that were left out */
        beside += others > share ? others : share;
        unasked -= weight;
        if (!(unasked < 0.5)) continue;
        for (c = 0, e = -1; c < mix->n; c++) {
            if (mix->p[c] > best) {
                second = best;
                best = mix->p[c];
                e = c;
            } else if (mix->p[c] > second) second = mix->p[c];
        }
        if (e >= 0 && best > second + beside + unasked + 1e-5) found = mix->ids[e];
    }
    mix->n_lookup = n_lookup;
    mix->n = 0;
    return found;
}
#endif

/* Insert a class into the best so far, after those of equal probability; return their number. */
static inline int32_t tl_insert(int32_t *ids, double *p, int32_t n, int32_t k, int32_t id, double value)
{
    int32_t at = n < k ? n : k - 1;
    for (; at > 0 && p[at - 1] < value; at--) {
        p[at] = p[at - 1];
        ids[at] = ids[at - 1];
    }
    p[at] = value;
    ids[at] = id;
    return n < k ? n + 1 : k;
}

TL_ONCE void tl_best_of(const tl_model *m, const tl_mixture *mix, int32_t k, int32_t *ids, double *p)
{
    int64_t mask = mix->n_lookup - 1, c, r;
    int32_t n = 0;
    for (c = 0; c < mix->n; c++)
        if (n < k || mix->p[c] > p[n - 1]) n = tl_insert(ids, p, n, k, mix->ids[c], mix->p[c]);
    for (r = 0; r < m->n_classes; r++) {
        int32_t id = tl_int(m->rank, r);
        double value = mix->rest * tl_long_number(m->prior, id);
        int64_t at = ((int64_t)id * 40503) & mask;
        if (n == k && value <= p[n - 1]) break;
        while (mix->lookup[at] != 0 && mix->ids[mix->lookup[at] - 1] != id) at = (at + 1) & mask;
        if (mix->lookup[at] == 0) n = tl_insert(ids, p, n, k, id, value);
    }
    for (; n < k; n++) { /* only if the rank of a file that was not checked lacks classes */
        ids[n] = 0;
        p[n] = 0.0;
    }
}

/* -- label trees --------------------------------------------------------------------------------- */

static inline void tl_add_embedding(const tl_model *m, int64_t feature, float x, float *TL_RESTRICT r)
{
    const uint8_t *u = m->U.at + 4 * feature * m->dim;
    int64_t t;
    for (t = 0; t < m->dim; t++) r[t] += x * tl_f32(u + 4 * t);
}

static inline void tl_add_key(const tl_model *m, uint64_t key, float *r, int64_t *n_found)
{
    int64_t low = 0, high = m->words.n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (tl_u64(m->words.at + 8 * middle) < key) low = middle + 1;
        else high = middle;
    }
    if (low < m->words.n && tl_u64(m->words.at + 8 * low) == key) {
        *n_found += 1;
        tl_add_embedding(m, low, 1.0f, r);
    }
}

/* The representation of an input. */
TL_ONCE int tl_embed(const tl_model *m, tl_input in, tl_room *room, float *r)
{
    int64_t t, i, n = (int64_t)in.n;
    for (t = 0; t < m->dim; t++) r[t] = 0.0f;
    if (in.kind == TL_TEXT) {
        tl_reader reader;
        int64_t n_words, n_found = 0, at;
        int status = tl_start_reading(m, in, room, &reader), length;
        if (status != TL_OK) return status;
        n_words = tl_read_words(&reader);
        for (i = 0; i < n_words; i++) {
            uint64_t h = 0xCBF29CE484222325u;
            for (at = reader.spans[2 * i]; at < reader.spans[2 * i + 1]; at++)
                h = (h ^ reader.buffer[at]) * 0x100000001B3u;
            reader.found[i] = h;
        }
        for (i = 0; i < n_words; i++) {
            uint64_t h = reader.found[i], key = h & ~(uint64_t)1;
            tl_add_key(m, key > 2 ? key : 2, r, &n_found);
            for (length = 2; length <= m->word_high && i + length <= n_words; length++) {
                h = h * 116049371u + reader.found[i + length - 1];
                tl_add_key(m, 2 * (h % (uint64_t)m->n_buckets) + 1, r, &n_found);
            }
        }
        if (m->mean && n_found > 0)
            for (t = 0; t < m->dim; t++) r[t] *= 1.0f / (float)n_found;
        for (t = 0; t < m->dim; t++) r[t] *= m->row_scale;
        return TL_OK;
    }
    if (m->text == TL_OK) return TL_BAD_ARGUMENT; /* it takes texts, and nothing else */
    if (in.kind == TL_DENSE) {
        const float *x = (const float *)in.at;
        if (n != m->n_features) return TL_WRONG_WIDTH;
        for (i = 0; i < n; i++)
            if (x[i] * m->row_scale != 0.0f) tl_add_embedding(m, i, x[i] * m->row_scale, r);
        return TL_OK;
    }
    if (in.kind != TL_PAIRS) return TL_BAD_ARGUMENT;
    for (i = 0; i < n; i++) {
        int32_t f = ((const int32_t *)in.at)[i];
        if (f < 0 || f >= m->n_features) return TL_BAD_FEATURE;
        tl_add_embedding(m, f, in.values[i] * m->row_scale, r);
    }
    return TL_OK;
}

/* Fill in the log-probabilities of a node's children. */
TL_ONCE void tl_log_probabilities(const tl_model *m, const float *r, int64_t node, float *out)
{
    const uint8_t *w = m->node_weights.at + 4 * node * m->n_outputs * m->dim;
    const uint8_t *b = m->node_bias.at + 4 * node * m->n_outputs;
    int64_t j;
    float top, total = 0.0f, norm;
    if (m->n_outputs == 1) {
        float score = tl_dot(r, w, m->dim) + tl_f32(b);
        float smaller = -(float)tl_log(1.0 + (double)tl_exp32(score < 0.0f ? score : -score));
        out[0] = smaller - (score > 0.0f ? score : 0.0f);
        out[1] = smaller + (score < 0.0f ? score : 0.0f);
        return;
    }
    for (j = 0; j < m->n_outputs; j++) out[j] = tl_dot(r, w + 4 * j * m->dim, m->dim) + tl_f32(b + 4 * j);
    top = out[tl_argmax(out, m->n_outputs)];
    for (j = 0; j < m->n_outputs; j++) total += tl_exp32(out[j] - top);
    norm = top + (total > 0.0f ? (float)tl_log((double)total) : 0.0f);
    for (j = 0; j < m->n_outputs; j++) out[j] = out[j] - norm < 0.0f ? out[j] - norm : 0.0f;
}

typedef struct tl_search_room {
    float *r, *logp, *stack_score, *scores;
    int32_t *stack;
} tl_search_room;

static inline size_t tl_search_size(const tl_model *m, int32_t k)
{
    size_t stack = (size_t)m->depth * (size_t)(m->arity - 1) + 2;
    return TL_ROUNDED(4 * m->dim) + TL_ROUNDED(4 * m->arity) + 2 * TL_ROUNDED(4 * stack) +
           TL_ROUNDED(4 * (size_t)k) + 64;
}

static inline int tl_take_search(const tl_model *m, int32_t k, tl_room *room, tl_search_room *s)
{
    uint64_t stack = (uint64_t)m->depth * (uint64_t)(m->arity - 1) + 2;
    s->r = (float *)tl_take(room, (uint64_t)m->dim, 4);
    s->logp = (float *)tl_take(room, (uint64_t)m->arity, 4);
    s->stack = (int32_t *)tl_take(room, stack, 4);
    s->stack_score = (float *)tl_take(room, stack, 4);
    s->scores = (float *)tl_take(room, (uint64_t)k, 4);
    return s->r != NULL && s->logp != NULL && s->stack != NULL && s->stack_score != NULL && s->scores != NULL;
}

/* The k most probable labels, by branch and bound. */
TL_ONCE void tl_search_labels(const tl_model *m, tl_search_room *s, int32_t k, int32_t *ids)
{
    const float none = -tl_float_of(0x7F800000u);
    int64_t top = 1, j;
    int32_t i;
    for (i = 0; i < k; i++) {
        s->scores[i] = none;
        ids[i] = 0;
    }
    s->stack[0] = 0;
    s->stack_score[0] = 0.0f;
    if (m->n_nodes == 0) {
        s->scores[0] = 0.0f;
        top = 0;
    }
    while (top > 0) {
        int32_t node = s->stack[--top];
        float score = s->stack_score[top];
        int64_t first = top;
        if (score <= s->scores[k - 1]) continue;
        if (node >= m->n_nodes) {
            int32_t at = k - 1;
            for (; at > 0 && s->scores[at - 1] < score; at--) {
                s->scores[at] = s->scores[at - 1];
                ids[at] = ids[at - 1];
            }
            s->scores[at] = score;
            ids[at] = node - (int32_t)m->n_nodes;
            continue;
        }
        tl_log_probabilities(m, s->r, node, s->logp);
        for (j = 0; j < m->arity; j++) {
            int32_t child = tl_int(m->children, node * m->arity + j);
            float own = score + s->logp[j];
            int64_t at = top;
            if (child < 0 || own <= s->scores[k - 1]) continue;
            for (; at > first && s->stack_score[at - 1] > own; at--) {
                s->stack[at] = s->stack[at - 1];
                s->stack_score[at] = s->stack_score[at - 1];
            }
            s->stack[at] = child;
            s->stack_score[at] = own;
            top += 1;
        }
    }
}

static inline int32_t tl_greedy_label(const tl_model *m, tl_search_room *s)
{
    int64_t node = 0, j;
    while (node < m->n_nodes) {
        int64_t best = -1;
        tl_log_probabilities(m, s->r, node, s->logp);
        for (j = 0; j < m->arity; j++)
            if (tl_int(m->children, node * m->arity + j) >= 0 && (best < 0 || s->logp[j] > s->logp[best])) best = j;
        node = tl_int(m->children, node * m->arity + best);
    }
    return (int32_t)(node - m->n_nodes);
}

TL_ONCE int32_t tl_predict_label(const tl_model *m, tl_input in, tl_room room, tl_search_room *s)
{
    int32_t id;
    int status;
    if (!tl_take_search(m, 1, &room, s)) return TL_NO_SCRATCH;
    status = tl_embed(m, in, &room, s->r);
    if (status != TL_OK) return status;
    if (m->greedy) return tl_greedy_label(m, s);
    tl_search_labels(m, s, 1, &id);
    return id;
}

/* -- answers ------------------------------------------------------------------------------------- */

TL_API size_t tl_scratch_size(const tl_model *m, int kinds, size_t text_bytes)
{
    size_t size = 64;
    if (m->n_classes < 1) return 0;
    if (m->kind == TL_LABEL_TREE) size += tl_search_size(m, (int32_t)m->n_classes) + TL_ROUNDED(4 * m->n_nodes);
    else {
        size += tl_mixture_size(m);
        if (m->sparse) size += TL_ROUNDED(4 * tl_n_top(m));
        if (m->sparse && (kinds & TL_DENSE)) size += 8 * (size_t)m->n_features + 16;
        if (!m->sparse && (kinds & (TL_PAIRS | TL_TEXT))) size += 4 * (size_t)m->n_features + 16;
    }
    if (kinds & TL_TEXT) size += tl_text_size(m, text_bytes);
    return size;
}

TL_API int tl_predict_topk(const tl_model *m, tl_input in, int32_t k, int32_t *ids, double *p,
                           void *scratch, size_t scratch_size)
{
    tl_room room = tl_room_in(scratch, scratch_size);
    tl_mixture mix;
    tl_search_room s;
    int status;
    int32_t i;
    if (k < 1 || k > m->n_classes) return TL_BAD_ARGUMENT;
    if (m->kind == TL_LABEL_TREE) {
        if (!tl_take_search(m, k, &room, &s)) return TL_NO_SCRATCH;
        status = tl_embed(m, in, &room, s.r);
        if (status != TL_OK) return status;
        tl_search_labels(m, &s, k, ids);
        for (i = 0; i < k; i++) p[i] = tl_exp((double)s.scores[i]);
        return TL_OK;
    }
    status = tl_mix_input(m, in, &mix, 1, room);
    if (status == TL_OK) tl_best_of(m, &mix, k, ids, p);
    return status;
}

TL_API int tl_predict_proba(const tl_model *m, tl_input in, double *p, void *scratch, size_t scratch_size)
{
    tl_room room = tl_room_in(scratch, scratch_size);
    tl_mixture mix;
    int64_t c, j;
    int status;
    if (m->n_classes < 1) return TL_BAD_ARGUMENT;
    if (m->kind == TL_LABEL_TREE) {
        tl_search_room s;
        double total = 0.0;
        float *log = NULL;
        if (tl_take_search(m, 1, &room, &s)) log = (float *)tl_take(&room, (uint64_t)m->n_nodes, 4);
        if (log == NULL) return TL_NO_SCRATCH;
        status = tl_embed(m, in, &room, s.r);
        if (status != TL_OK) return status;
        p[0] = 1.0; /* if there is but one */
        if (m->n_nodes > 0) log[0] = 0.0f;
        for (c = 0; c < m->n_nodes; c++) { /* parents come before children */
            tl_log_probabilities(m, s.r, c, s.logp);
            for (j = 0; j < m->arity; j++) {
                int64_t child = tl_int(m->children, c * m->arity + j);
                if (child >= m->n_nodes) p[child - m->n_nodes] = tl_exp((double)(log[c] + s.logp[j]));
                else if (child >= 0) log[child] = log[c] + s.logp[j];
            }
        }
        for (c = 0; c < m->n_classes; c++) total += p[c];
        for (c = 0; c < m->n_classes; c++) p[c] /= total;
        return TL_OK;
    }
    status = tl_mix_input(m, in, &mix, 1, room);
    if (status != TL_OK) return status;
    for (c = 0; c < m->n_classes; c++) p[c] = mix.rest * tl_long_number(m->prior, c);
    for (c = 0; c < mix.n; c++) p[mix.ids[c]] = mix.p[c];
    return TL_OK;
}

TL_API int64_t tl_most_held(const tl_model *m)
{
    return m->n_classes < 1 || m->kind == TL_LABEL_TREE ? m->n_classes : tl_n_mixed(m);
}

TL_API int64_t tl_predict_held(const tl_model *m, tl_input in, int32_t *ids, double *p, int64_t max,
                               void *scratch, size_t scratch_size)
{
    tl_mixture mix;
    int64_t c;
    int status;
    if (m->n_classes < 1) return TL_BAD_ARGUMENT;
    if (m->kind == TL_LABEL_TREE) { /* all labels */
        if (max < m->n_classes) return TL_NO_SCRATCH;
        for (c = 0; c < m->n_classes; c++) ids[c] = (int32_t)c;
        status = tl_predict_proba(m, in, p, scratch, scratch_size);
        return status == TL_OK ? m->n_classes : (int64_t)status;
    }
    status = tl_mix_input(m, in, &mix, 1, tl_room_in(scratch, scratch_size));
    if (status == TL_OK && mix.n_held > max) status = TL_NO_SCRATCH;
    for (c = 0; status == TL_OK && c < mix.n_held; c++) {
        ids[c] = mix.ids[c];
        p[c] = mix.p[c];
    }
    return status == TL_OK ? mix.n_held : (int64_t)status;
}

TL_API int tl_proba_of(const tl_model *m, tl_input in, int32_t id, int smooth, double *p, void *scratch,
                       size_t scratch_size)
{
    tl_mixture mix;
    int status;
    if (m->n_classes < 1 || m->kind != TL_TREE || id < 0 || id >= m->n_classes) return TL_BAD_ARGUMENT;
    status = tl_mix_input(m, in, &mix, smooth, tl_room_in(scratch, scratch_size));
    if (status != TL_OK) return status;
    *p = mix.rest * tl_long_number(m->prior, id);
    while (mix.n-- > 0)
        if (mix.ids[mix.n] == id) *p = mix.p[mix.n];
    return TL_OK;
}

TL_API int tl_known_terms(const tl_model *m, tl_input in, double *n_known, double *n_terms,
                          void *scratch, size_t scratch_size)
{
    tl_room room = tl_room_in(scratch, scratch_size);
    tl_model alike = *m; /* with n-grams of one length */
    tl_reader r;
    int64_t i, n_words, size;
    int status;
    if (in.kind != TL_TEXT || m->kind != TL_TREE || m->n_classes < 1 || m->hashing) return TL_BAD_ARGUMENT;
    status = tl_start_reading(m, in, &room, &r);
    if (status != TL_OK) return status;
    if (m->word_high > 0) {
        n_words = tl_read_words(&r);
        for (i = 0; i + m->word_low <= n_words; i++)
            tl_note_gram(m, &r, r.spans[2 * i], r.spans[2 * (i + m->word_low - 1) + 1], 0);
    } else {
        size = tl_read_pieces(&r);
        alike.char_low = alike.char_high;
        tl_note_chars(&alike, &r, size);
    }
    *n_terms = (double)r.n_pending;
    tl_look_up(m, &r, m->word_high == 0);
    *n_known = (double)r.n_found;
    return TL_OK;
}

TL_API int32_t tl_predict(const tl_model *m, tl_input in, void *scratch, size_t scratch_size)
{
    tl_room room = tl_room_in(scratch, scratch_size);
    tl_row row;
    int64_t leaf, k;
    float *scores;
    int status;
    if (m->n_classes < 1) return TL_BAD_ARGUMENT;
    if (m->kind == TL_LABEL_TREE) {
        tl_search_room s;
        return tl_predict_label(m, in, room, &s);
    }
    if (m->beam > 1 || m->n_trees > 1) {
        tl_mixture mix;
        int32_t id;
        double p;
        status = tl_make_row(m, in, &room, &row);
        if (status != TL_OK) return status;
        if (!tl_take_mixture(m, &room, &mix)) return TL_NO_SCRATCH;
#ifndef __OPTIMIZE_SIZE__
        id = tl_vote(m, &row, &mix);
        if (id != TL_UNDECIDED) return id;
#endif
        status = tl_mix(m, &row, &mix, 1);
        if (status != TL_OK) return status;
        tl_best_of(m, &mix, 1, &id, &p);
        return id;
    }
    status = tl_make_row(m, in, &room, &row);
    if (status != TL_OK) return status;
    scores = (float *)tl_take(&room, (uint64_t)m->max_classes, 4);
    if (scores == NULL) return TL_NO_SCRATCH;
    leaf = tl_descend(m, &row, 0);
    if (!m->checked && !tl_leaf_is_valid(m, leaf)) return TL_BAD_LEAF;
    k = tl_score_leaf(m, &row, leaf, scores);
    return tl_int(m->class_ids, tl_offset(m->class_ptr, leaf) + tl_argmax(scores, k));
}

TL_API int32_t tl_explain_path(const tl_model *m, tl_input in, int32_t tree, tl_step *steps,
                               int32_t max_steps, int32_t *end, void *scratch, size_t scratch_size)
{
    tl_room room = tl_room_in(scratch, scratch_size);
    tl_row row;
    int64_t node = tree, child, j;
    int32_t n = 0, i;
    int status;
    if (m->n_classes < 1 || tree < 0 || tree >= m->n_trees) return TL_BAD_ARGUMENT;
    if (m->kind == TL_LABEL_TREE) {
        tl_search_room s;
        int64_t target;
        *end = tl_predict_label(m, in, room, &s);
        if (*end < 0) return *end;
        if (m->n_nodes == 0) return 0;
        for (target = m->n_nodes + *end; target > 0; target = node) { /* from the label up */
            int64_t branch = -1;
            for (node = (target < m->n_nodes ? target : m->n_nodes) - 1; node >= 0; node--) {
                for (j = 0; j < m->arity && branch < 0; j++)
                    if (tl_int(m->children, node * m->arity + j) == target) branch = j;
                if (branch >= 0) break;
            }
            if (branch < 0 || n == max_steps) return TL_NO_SCRATCH;
            tl_log_probabilities(m, s.r, node, s.logp);
            steps[n].node = (int32_t)node;
            steps[n].branch = (int32_t)branch;
            steps[n++].score = s.logp[branch];
        }
        for (i = 0; i < n / 2; i++) {
            tl_step step = steps[i];
            steps[i] = steps[n - 1 - i];
            steps[n - 1 - i] = step;
        }
        return n;
    }
    status = tl_make_row(m, in, &room, &row);
    if (status != TL_OK) return status;
    while ((child = tl_int(m->child, node)) >= 0) {
        if (n == max_steps) return TL_NO_SCRATCH;
        steps[n].node = (int32_t)node;
        steps[n].score = tl_router_score(m, &row, node);
        steps[n].branch = steps[n].score >= 0.0f;
        node = child + steps[n++].branch;
    }
    *end = (int32_t)(-1 - child);
    return n;
}

#endif
