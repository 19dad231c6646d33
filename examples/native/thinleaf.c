/* thinleaf.h as a library for other languages: cc -O2 -ffp-contract=off -c thinleaf.c */
#define TL_API
#include "thinleaf.h"
