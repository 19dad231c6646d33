/* Good model files, mutated, through thinleaf.h; build it with sanitizers.
 *
 *     fuzz CASES SEED FILE...      mutates the files itself
 *     clang -fsanitize=fuzzer,address,undefined -DLIBFUZZER fuzz.c      is a target of libFuzzer
 *
 * Start from tests/data/vectors and tests/data/models; what was found is kept in tests/native/corpus.
 */
#include <stdio.h>
#include <stdlib.h>

#include "thinleaf.h"

static uint64_t state = 1;

static uint64_t draw(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return n ? (state >> 11) % n : 0;
}

static const char *const texts[] = {
    "", "card", "My card was stolen, please help with the LOAN", "\xce\xa3\xce\xaf\xce\xa3 a.\xce\xa3",
    "\xc4\xb0stanbul \xe6\xbc\xa2\xe5\xad\x97 pay pin pin pin", "\xff\xfe", "a\x80",
    "w1 w2 w3 a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b",
    "\xf0\x90\x90\x80\xed\xa0\x80 x",
};

/* All that can be asked of an opened model, with rows that are good and bad. */
static void use(const tl_model *m)
{
    size_t n_texts = sizeof texts / sizeof texts[0], t, room, n;
    int64_t width = m->n_features < 4096 ? m->n_features : 4096, i;
    int32_t k = m->n_classes < 5 ? (int32_t)m->n_classes : 5, ids[5], end;
    double p[5], known;
    int64_t held, most = tl_most_held(m);
    int64_t wide = m->n_classes > most ? m->n_classes : most;
    double *all = (double *)malloc(8 * (size_t)(wide < 1 << 20 ? wide : 0) + 8);
    int32_t *all_ids = (int32_t *)malloc(4 * (size_t)(wide < 1 << 20 ? wide : 0) + 8);
    float *x = (float *)malloc(4 * (size_t)width + 4), *val = (float *)malloc(4 * 40);
    int32_t *idx = (int32_t *)malloc(4 * 40);
    tl_step *steps = (tl_step *)malloc(sizeof(tl_step) * ((size_t)m->depth + 1));
    int round, kinds = TL_PAIRS | TL_TEXT | (m->n_features == width ? TL_DENSE : 0);
    void *scratch;
    room = tl_scratch_size(m, kinds, 200);
    if (room > (size_t)1 << 28) room = 0; /* the caller would say no */
    scratch = malloc(room ? room : 1);
    for (round = 0; round < 3; round++) {
        tl_input inputs[3];
        for (i = 0; i < width; i++) x[i] = round == 2 ? tl_float_of((uint32_t)draw(1ull << 32)) : (float)draw(7) - 3.0f;
        n = draw(40);
        for (i = 0; i < (int64_t)n; i++) {
            idx[i] = round == 2 ? (int32_t)draw(1ull << 32) : (int32_t)draw((uint64_t)(m->n_features ? m->n_features : 1));
            val[i] = round == 2 ? tl_float_of((uint32_t)draw(1ull << 32)) : (float)draw(9) - 4.0f;
        }
        t = draw(n_texts);
        inputs[0] = tl_dense(x, (size_t)width);
        inputs[1] = tl_pairs(idx, val, n);
        inputs[2] = tl_text(texts[t], strlen(texts[t]));
        for (i = 0; i < 3; i++) {
            int32_t id = tl_predict(m, inputs[i], scratch, room);
            int status = tl_predict_topk(m, inputs[i], k, ids, p, scratch, room);
            size_t length;
            if (id >= m->n_classes) abort();
            if (status == TL_OK)
                for (t = 0; t < (size_t)k; t++)
                    if (ids[t] < 0 || ids[t] >= m->n_classes) abort();
            if (id >= 0) {
                const char *label = tl_label_text(m, id, &length);
                if (label != NULL && length > 0 && label[0] == 1 && label[length - 1] == 2) ids[0] = 0;
                tl_label_int(m, id);
                tl_label_float(m, id);
            }
            tl_explain_path(m, inputs[i], (int32_t)draw((uint64_t)m->n_trees), steps, m->depth, &end, scratch, room);
            if (wide < 1 << 20) {
                tl_predict_proba(m, inputs[i], all, scratch, room);
                held = tl_predict_held(m, inputs[i], all_ids, all, most, scratch, room);
                if (held > most) abort();
                while (held-- > 0)
                    if (all_ids[held] < 0 || all_ids[held] >= m->n_classes) abort();
                tl_predict_proba(m, inputs[i], all, scratch, room ? draw(room) : 0);
                tl_predict_held(m, inputs[i], all_ids, all, (int64_t)draw((uint64_t)most + 1), scratch, room);
            }
            tl_proba_of(m, inputs[i], (int32_t)draw((uint64_t)m->n_classes + 2) - 1, (int)draw(2), p, scratch, room);
            if (tl_known_terms(m, inputs[i], p, &known, scratch, room) == TL_OK && p[0] > known) abort();
            tl_known_terms(m, inputs[i], p, &known, scratch, room ? draw(room) : 0);
            /* a scratch that is too small is an error, too */
            tl_predict(m, inputs[i], scratch, room ? draw(room) : 0);
            tl_predict_topk(m, inputs[i], k, ids, p, scratch, room ? draw(room) : 0);
        }
    }
    free(all);
    free(all_ids);
    free(steps);
    free(scratch);
    free(idx);
    free(val);
    free(x);
}

static int one(const uint8_t *data, size_t size)
{
    tl_model m;
    uint8_t *copy = (uint8_t *)malloc(size ? size : 1); /* the byte behind it is not ours */
    size_t need;
    void *memory;
    int status;
    memcpy(copy, data, size);
    need = tl_memory_size(copy, size);
    if (need > (size_t)1 << 30) need = 0;
    memory = malloc(need ? need : 1);
    status = tl_open(&m, copy, size, memory, need ? need : 1);
    if (status == TL_OK) {
        use(&m);
        if (tl_check(&m) == TL_OK) use(&m);
    }
    if (tl_open(&m, copy, size, NULL, 0) == TL_OK) use(&m);
    free(memory);
    free(copy);
    return status == TL_OK;
}

#ifdef LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    state = 88172645463325252u;
    one(data, size);
    return 0;
}
#else
static const uint64_t extremes[] = {0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000u, 0xFFFFFFFFu,
                                    0x7F800000, 0x7FC00000, 0x7FF0000000000000u, 0x7FFFFFFFFFFFFFFFu,
                                    0x8000000000000000u, 0xFFFFFFFFFFFFFFFFu, 0x7C00};

/* Change some bytes: of the header as often as of the arrays. */
static size_t mutate(uint8_t *data, size_t size)
{
    uint64_t header = 8 + tl_u64(data), n = 1 + draw(4), i;
    for (i = 0; i < n; i++) {
        size_t at = draw(3) == 0 && header < size ? 8 + (size_t)draw(header - 8) : (size_t)(header + draw(size - header));
        uint64_t v = extremes[draw(sizeof extremes / sizeof extremes[0])];
        size_t width = (size_t)1 << draw(4);
        if (at < header) {
            if (data[at] >= '0' && data[at] <= '9') data[at] = (uint8_t)('0' + draw(10));
            else if (draw(4) == 0) data[at] = (uint8_t)draw(256);
            else if (draw(2)) memcpy(data + at, data + 8 + draw(header - 8), 1);
            continue;
        }
        at -= (at - header) % width;
        if (at + width > size) continue;
        if (draw(3) == 0) {
            uint64_t near;
            memcpy(&near, data + at, width);
            near += draw(7) - 3;
            memcpy(data + at, &near, width);
        } else memcpy(data + at, &v, width);
    }
    return draw(20) == 0 ? (size_t)draw(size) : size;
}

int main(int argc, char **argv)
{
    long cases = argc > 3 ? atol(argv[1]) : 0, i, accepted = 0;
    int n_files = argc - 3, f;
    uint8_t **files = (uint8_t **)calloc((size_t)(n_files > 0 ? n_files : 1), sizeof *files);
    size_t *sizes = (size_t *)calloc((size_t)(n_files > 0 ? n_files : 1), sizeof *sizes);
    state = argc > 3 ? (uint64_t)atol(argv[2]) * 0x9E3779B97F4A7C15u + 1 : 1;
    for (f = 0; f < n_files; f++) {
        FILE *file = fopen(argv[3 + f], "rb");
        if (file == NULL) return 2;
        files[f] = (uint8_t *)malloc((size_t)1 << 20);
        sizes[f] = fread(files[f], 1, (size_t)1 << 20, file);
        fclose(file);
        if (!one(files[f], sizes[f])) printf("refused: %s\n", argv[3 + f]);
    }
    for (i = 0; i < cases; i++) {
        uint8_t *copy;
        size_t size;
        f = (int)draw((uint64_t)n_files);
        copy = (uint8_t *)malloc(sizes[f]);
        memcpy(copy, files[f], sizes[f]);
        size = mutate(copy, sizes[f]);
        accepted += one(copy, size);
        free(copy);
    }
    printf("%ld cases, %ld accepted\n", cases, accepted);
    for (f = 0; f < n_files; f++) free(files[f]);
    free(files);
    free(sizes);
    return 0;
}
#endif
