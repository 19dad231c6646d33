/* thinleaf.h for WebAssembly: what thinleaf.js calls. Freestanding: memory comes from the page. */
#define TL_FREESTANDING
#include "../thinleaf.h"

#define EXPORT(name) __attribute__((export_name(#name))) name

void *memcpy(void *to, const void *from, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) ((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
    return to;
}

void *memset(void *to, int value, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) ((uint8_t *)to)[i] = (uint8_t)value;
    return to;
}

extern uint8_t __heap_base;
static uint8_t *top;

/* Memory is only ever taken; `release` gives back all from an address on. */
void *EXPORT(take)(size_t n)
{
    uint8_t *at = top ? top : &__heap_base;
    size_t end;
    at = (uint8_t *)(((uintptr_t)at + 15) & ~(uintptr_t)15);
    if (n > 0x7FFFFFFF - (size_t)(uintptr_t)at) return 0;
    end = (size_t)(uintptr_t)at + n;
    while (end > __builtin_wasm_memory_size(0) * 65536)
        if (__builtin_wasm_memory_grow(0, (end - __builtin_wasm_memory_size(0) * 65536 + 65535) / 65536) == (size_t)-1)
            return 0;
    top = at + n;
    return at;
}

void EXPORT(release)(void *at) { top = (uint8_t *)at; }

static tl_input input_of(int kind, const void *at, const float *values, size_t n)
{
    if (kind == TL_DENSE) return tl_dense((const float *)at, n);
    if (kind == TL_PAIRS) return tl_pairs((const int32_t *)at, values, n);
    return tl_text((const char *)at, n);
}

size_t EXPORT(model_size)(void) { return tl_model_size(); }
size_t EXPORT(memory_size)(const void *data, size_t size) { return tl_memory_size(data, size); }
int EXPORT(open)(tl_model *m, const void *data, size_t size, void *memory, size_t n)
{
    int status = tl_open(m, data, size, memory, n);
    return status == TL_OK ? tl_check(m) : status;
}
size_t EXPORT(scratch_size)(const tl_model *m, int kinds, size_t n) { return tl_scratch_size(m, kinds, n); }
int32_t EXPORT(predict)(const tl_model *m, int kind, const void *at, const float *values, size_t n,
                        void *scratch, size_t room)
{
    return tl_predict(m, input_of(kind, at, values, n), scratch, room);
}
int32_t EXPORT(topk)(const tl_model *m, int kind, const void *at, const float *values, size_t n,
                     int32_t k, int32_t *ids, double *p, void *scratch, size_t room)
{
    return tl_predict_topk(m, input_of(kind, at, values, n), k, ids, p, scratch, room);
}
int32_t EXPORT(path)(const tl_model *m, int kind, const void *at, const float *values, size_t n,
                     int32_t tree, tl_step *steps, int32_t most, int32_t *end, void *scratch, size_t room)
{
    return tl_explain_path(m, input_of(kind, at, values, n), tree, steps, most, end, scratch, room);
}
int32_t EXPORT(number)(const tl_model *m, int which)
{
    switch (which) {
    case 0: return (int32_t)m->n_features;
    case 1: return (int32_t)m->n_classes;
    case 2: return (int32_t)m->n_trees;
    case 3: return m->depth;
    case 4: return m->text;
    default: return m->label_kind;
    }
}
const char *EXPORT(label_text)(const tl_model *m, int32_t id, size_t *n) { return tl_label_text(m, id, n); }
double EXPORT(label_number)(const tl_model *m, int32_t id)
{
    return m->label_kind == TL_LABEL_FLOAT ? tl_label_float(m, id) : (double)tl_label_int(m, id);
}
int64_t EXPORT(label_int)(const tl_model *m, int32_t id) { return tl_label_int(m, id); }
const char *EXPORT(error)(int status) { return tl_error(status); }
