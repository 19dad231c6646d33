/* Nanoseconds per prediction of thinleaf.h in a loop over inputs: see native.py.
 *
 *     native_loop MODEL INPUTS IDS ROUNDS
 *
 * INPUTS: int64 kind, n, offsets[n + 1]; then floats, or int32 indices and floats, or bytes. The ids
 * of all inputs go to IDS. It prints the median and the least processor time of a prediction over the rounds.
 */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "thinleaf.h"

static void *content(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    void *data;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) exit(2);
    *size = (size_t)ftell(file);
    rewind(file);
    data = malloc(*size + 1);
    if (data == NULL || fread(data, 1, *size, file) != *size) exit(2);
    fclose(file);
    return data;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    size_t size, n_bytes, need, room, longest = 0, n, i;
    int rounds = argc == 5 ? atoi(argv[4]) : 0, r, kind, status;
    const void *data;
    const int64_t *head, *at;
    const char *payload;
    const float *values;
    double *times;
    int32_t *ids;
    void *scratch;
    tl_model model;
    tl_input *inputs;
    FILE *out;
    if (rounds < 1) return 2;
    data = content(argv[1], &size);
    head = (const int64_t *)content(argv[2], &n_bytes);
    kind = (int)head[0];
    n = (size_t)head[1];
    at = head + 2;
    payload = (const char *)(at + n + 1);
    values = (const float *)(payload + 4 * at[n]);
    need = tl_memory_size(data, size);
    status = tl_open(&model, data, size, malloc(need), need);
    if (status == TL_OK) status = tl_check(&model);
    if (status != TL_OK) {
        fprintf(stderr, "%s\n", tl_error(status));
        return 1;
    }
    inputs = (tl_input *)malloc(n * sizeof *inputs);
    for (i = 0; i < n; i++) {
        size_t length = (size_t)(at[i + 1] - at[i]);
        if (length > longest) longest = length;
        inputs[i] = kind == TL_DENSE   ? tl_dense((const float *)(const void *)payload + at[i], length)
                    : kind == TL_PAIRS ? tl_pairs((const int32_t *)(const void *)payload + at[i], values + at[i], length)
                                       : tl_text(payload + at[i], length);
    }
    room = tl_scratch_size(&model, kind, longest);
    scratch = malloc(room);
    ids = (int32_t *)malloc(4 * n);
    times = (double *)malloc(sizeof(double) * (size_t)rounds);
    for (r = 0; r < rounds; r++) {
        struct timespec a, b;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
        for (i = 0; i < n; i++) ids[i] = tl_predict(&model, inputs[i], scratch, room);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
        times[r] = ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (double)n;
    }
    qsort(times, (size_t)rounds, sizeof(double), by_size);
    printf("%.2f %.2f %zu %zu\n", times[rounds / 2], times[0], need, room);
    out = fopen(argv[3], "wb");
    return out != NULL && fwrite(ids, 4, n, out) == n && fclose(out) == 0 ? 0 : 2;
}
