/* Labels for lines: cc -O2 -ffp-contract=off -I$(python -m thinleaf.native) predict.c -o predict -lm
 *
 *     predict MODEL [K] < LINES
 *
 * A line is a text, or the numbers of a dense row, separated by blanks. The model is mapped, not read.
 */
#define _POSIX_C_SOURCE 200112L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "thinleaf.h"

#define LONGEST 65536

/* Map a file; NULL if that cannot be. */
static const void *map_file(const char *path, size_t *size)
{
    struct stat about;
    void *data = MAP_FAILED;
    int file = open(path, O_RDONLY);
    if (file >= 0 && fstat(file, &about) == 0 && about.st_size > 0) {
        *size = (size_t)about.st_size;
        data = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (file >= 0) close(file);
    return data == MAP_FAILED ? NULL : data;
}

static void print_label(const tl_model *model, int32_t id)
{
    size_t length;
    const char *label = tl_label_text(model, id, &length);
    if (label != NULL) printf("%.*s", (int)length, label);
    else if (model->label_kind == TL_LABEL_FLOAT) printf("%.17g", tl_label_float(model, id));
    else printf("%lld", (long long)tl_label_int(model, id));
}

int main(int argc, char **argv)
{
    static char line[LONGEST];
    size_t size = 0, need, room;
    const void *data = argc > 1 ? map_file(argv[1], &size) : NULL;
    int32_t k = argc > 2 ? (int32_t)atoi(argv[2]) : 1, i;
    tl_model model;
    void *memory, *scratch;
    float *row;
    int32_t *ids;
    double *p;
    int status;
    if (data == NULL) {
        fprintf(stderr, "usage: predict MODEL [K] < LINES\n");
        return 2;
    }
    need = tl_memory_size(data, size);
    memory = malloc(need ? need : 1);
    status = tl_open(&model, data, size, memory, need ? need : 1);
    if (status == TL_OK) status = tl_check(&model);
    if (status != TL_OK) {
        fprintf(stderr, "%s: %s\n", argv[1], tl_error(status));
        return 1;
    }
    if (k < 1 || k > model.n_classes) k = 1;
    room = tl_scratch_size(&model, TL_DENSE | TL_TEXT, LONGEST);
    scratch = malloc(room);
    row = (float *)malloc(sizeof(float) * (size_t)(model.n_features + 1));
    ids = (int32_t *)malloc(sizeof *ids * (size_t)k);
    p = (double *)malloc(sizeof *p * (size_t)k);
    if (memory == NULL || scratch == NULL || row == NULL || ids == NULL || p == NULL) return 1;
    while (fgets(line, LONGEST, stdin) != NULL) {
        tl_input in = tl_text(line, strcspn(line, "\n"));
        if (model.text == TL_NO_TEXTS) {
            char *at = line, *end = line;
            int64_t n = 0;
            for (; n <= model.n_features; n++, at = end) {
                float value = strtof(at, &end);
                if (end == at) break;
                row[n] = value;
            }
            in = tl_dense(row, (size_t)n);
        }
        status = tl_predict_topk(&model, in, k, ids, p, scratch, room);
        if (status != TL_OK) {
            printf("error: %s\n", tl_error(status));
            continue;
        }
        for (i = 0; i < k; i++) {
            print_label(&model, ids[i]);
            printf("\t%.6f%s", p[i], i + 1 < k ? "\t" : "\n");
        }
    }
    return 0;
}
