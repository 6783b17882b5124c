/* Dropout: Philox 4x32-10 (Salmon et al., SC'11) for 16 counters at a time. */
#include "kernels/cpu/loops_internal.h"

#define GROUP (4 * WIDTH) /* elements of 16 blocks */

/* word[16 w + i] = word w of the block with counter {first + i, 0, step, stream}. */
static void philox_group(uint32_t word[GROUP], uint32_t first, uint32_t stream,
                         const struct dropout_draw *draw)
{
    uint32_t k0 = (uint32_t)draw->key, k1 = (uint32_t)(draw->key >> 32);
    uint32_t *c0 = word, *c1 = c0 + WIDTH, *c2 = c1 + WIDTH, *c3 = c2 + WIDTH;

    for (int i = 0; i < WIDTH; i++) {
        c0[i] = first + (uint32_t)i;
        c1[i] = 0;
        c2[i] = draw->step;
        c3[i] = stream;
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < WIDTH; i++) {
            uint64_t left = (uint64_t)c0[i] * 0xd2511f53u;
            uint64_t right = (uint64_t)c2[i] * 0xcd9e8d57u;
            c0[i] = (uint32_t)(right >> 32) ^ c1[i] ^ k0;
            c2[i] = (uint32_t)(left >> 32) ^ c3[i] ^ k1;
            c1[i] = (uint32_t)right;
            c3[i] = (uint32_t)left;
        }
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
}

void LOOPS(dropout)(real *restrict y, real *restrict mask, int64_t first, int64_t count, uint32_t stream,
                    const struct dropout_draw *draw)
{
    uint32_t threshold = (uint32_t)(draw->probability * 4294967296.0);
    real kept = (real)(1 / (1 - draw->probability));
    uint32_t word[GROUP];
    int64_t done = 0;

    while (done < count) {
        int64_t group = (first + done) / GROUP, offset = (first + done) % GROUP;
        int64_t size = GROUP - offset < count - done ? GROUP - offset : count - done;

        philox_group(word, (uint32_t)(group * WIDTH), stream, draw);
        for (int64_t i = 0; i < size; i++) {
            real factor = word[offset + i] < threshold ? 0 : kept;
            mask[done + i] = factor;
            y[done + i] *= factor;
        }
        done += size;
    }
}
