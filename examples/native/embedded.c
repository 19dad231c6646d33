/* A model in the program: no files, no allocation, 64 kB in all with a small model.
 *
 *     thinleaf export small.thinleaf --to c -o model.h
 *     cc -Os -DTL_ASCII_ONLY -ffp-contract=off -I$(python -m thinleaf.native) embedded.c -o embedded -lm
 *
 * It reads a row of numbers and prints the number of the class, where a microcontroller would read
 * sensors and switch something. Scratch is a static array: tl_scratch_size says how large it must be.
 */
#include <stdio.h>

#include "model.h" /* static const unsigned char thinleaf_model[] */
#include "thinleaf.h"

#define MOST_FEATURES 64

static unsigned char scratch[4096];

int main(void)
{
    static tl_model model;
    float row[MOST_FEATURES];
    size_t n = 0;
    int32_t id;
    int status = tl_open(&model, thinleaf_model, sizeof thinleaf_model, NULL, 0);
    if (status == TL_OK) status = tl_check(&model);
    if (status != TL_OK || tl_scratch_size(&model, TL_DENSE, 0) > sizeof scratch) {
        printf("%s\n", status != TL_OK ? tl_error(status) : "enlarge scratch");
        return 1;
    }
    while (n < MOST_FEATURES && scanf("%f", &row[n]) == 1) n++;
    id = tl_predict(&model, tl_dense(row, n), scratch, sizeof scratch);
    printf("%ld\n", (long)id);
    return id < 0;
}
