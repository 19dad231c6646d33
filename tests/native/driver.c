/* thinleaf.h as functions that Python's ctypes can call. */
#include <stdlib.h>

#include "thinleaf.h"

typedef struct handle {
    tl_model model;
    void *data, *memory, *scratch;
    size_t scratch_size;
} handle;

void d_close(handle *h)
{
    if (h == NULL) return;
    free(h->data);
    free(h->memory);
    free(h->scratch);
    free(h);
}

/* Blocks of exactly the sizes that the header asks for: sanitizers see the byte behind. */
handle *d_open(const void *data, size_t size, int check, size_t text_bytes, int *status)
{
    handle *h = (handle *)calloc(1, sizeof *h);
    size_t need;
    h->data = malloc(size ? size : 1);
    memcpy(h->data, data, size);
    need = tl_memory_size(h->data, size);
    h->memory = malloc(need ? need : 1);
    *status = tl_open(&h->model, h->data, size, h->memory, need ? need : 1);
    if (*status == TL_OK && check) *status = tl_check(&h->model);
    if (*status != TL_OK) {
        d_close(h);
        return NULL;
    }
    h->scratch_size = tl_scratch_size(&h->model, TL_DENSE | TL_PAIRS | TL_TEXT, text_bytes);
    h->scratch = malloc(h->scratch_size);
    return h;
}

int64_t d_sizes(const handle *h, int which)
{
    const tl_model *m = &h->model;
    int64_t values[] = {m->n_features, m->n_classes, m->n_trees, m->depth, m->text, m->label_kind,
                        m->beam, (int64_t)h->scratch_size};
    return values[which];
}

static tl_input input_of(int kind, const void *at, const float *values, size_t n)
{
    if (kind == TL_DENSE) return tl_dense((const float *)at, n);
    if (kind == TL_PAIRS) return tl_pairs((const int32_t *)at, values, n);
    return tl_text((const char *)at, n);
}

int32_t d_predict(const handle *h, int kind, const void *at, const float *values, size_t n)
{
    return tl_predict(&h->model, input_of(kind, at, values, n), h->scratch, h->scratch_size);
}

int d_topk(const handle *h, int kind, const void *at, const float *values, size_t n, int32_t k,
           int32_t *ids, double *p)
{
    return tl_predict_topk(&h->model, input_of(kind, at, values, n), k, ids, p, h->scratch,
                           h->scratch_size);
}

int32_t d_path(const handle *h, int kind, const void *at, const float *values, size_t n, int32_t tree,
               tl_step *steps, int32_t max_steps, int32_t *end)
{
    return tl_explain_path(&h->model, input_of(kind, at, values, n), tree, steps, max_steps, end,
                           h->scratch, h->scratch_size);
}

int64_t d_row(const handle *h, const char *text, size_t n, int32_t *idx, float *val, int64_t max)
{
    return tl_row_of_text(&h->model, tl_text(text, n), idx, val, max, h->scratch, h->scratch_size);
}

const char *d_label(const handle *h, int32_t id, size_t *n) { return tl_label_text(&h->model, id, n); }
int64_t d_label_int(const handle *h, int32_t id) { return tl_label_int(&h->model, id); }
double d_label_float(const handle *h, int32_t id) { return tl_label_float(&h->model, id); }
const char *d_error(int status) { return tl_error(status); }
int64_t d_lower(const uint8_t *text, size_t n, uint8_t *out) { return tl_lower_case(text, n, out); }
int d_kind(uint32_t code) { return tl_kind_of(code); }
double d_exp(double x) { return tl_exp(x); }
double d_log(double x) { return tl_log(x); }
double d_log1p(double x) { return tl_log1p(x); }
float d_half(uint16_t h) { return tl_half(h); }
#ifndef __OPTIMIZE_SIZE__
void d_soften(double *x, int n) { tl_soften(x, n); }
double d_votes(float *x, int64_t k) { return tl_votes(x, k); }
#endif
