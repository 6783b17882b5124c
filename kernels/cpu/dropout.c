/* Dropout: Philox 4x32-10 (Salmon et al., SC'11) for 16 counters at a time. */
#include "kernels/cpu/loops_internal.h"

#include <math.h>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define WORDS (4 * WIDTH) /* of 16 blocks */
#define GROUP (2 * WORDS) /* elements: each takes half a word */

/* philox_group: word[16 w + i] = word w of the block with counter {first + i, 0, step, stream}. A round is
 *   c0, c1, c2, c3 = high(c2 M1) ^ c1 ^ k0, low(c2 M1), high(c0 M0) ^ c3 ^ k1, low(c0 M0). */
#define M0 0xd2511f53u
#define M1 0xcd9e8d57u
#define W0 0x9e3779b9u
#define W1 0xbb67ae85u
#define ROUNDS 10

#ifdef __AVX512F__
/* Written out, since compilers take the slow 64-bit multiplication for the 32-bit one (3 times as long in
 * all). Eight counters in 64-bit elements; what a product leaves in an upper half is never looked at. */
static void philox_eight(uint32_t *word, uint32_t first, uint32_t stream, const struct dropout_draw *draw)
{
    const __m512i m0 = _mm512_set1_epi64(M0), m1 = _mm512_set1_epi64(M1);
    __m512i c0 = _mm512_add_epi64(_mm512_set1_epi64(first), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
    __m512i c1 = _mm512_setzero_si512(), c2 = _mm512_set1_epi64(draw->step), c3 = _mm512_set1_epi64(stream);
    uint32_t k0 = (uint32_t)draw->key, k1 = (uint32_t)(draw->key >> 32);

    for (int round = 0; round < ROUNDS; round++, k0 += W0, k1 += W1) {
        __m512i left = _mm512_mul_epu32(c0, m0), right = _mm512_mul_epu32(c2, m1);
        c0 = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(right, 32), c1), _mm512_set1_epi64(k0));
        c2 = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(left, 32), c3), _mm512_set1_epi64(k1));
        c1 = right;
        c3 = left;
    }
    _mm256_storeu_si256((__m256i *)word, _mm512_cvtepi64_epi32(c0));
    _mm256_storeu_si256((__m256i *)(word + WIDTH), _mm512_cvtepi64_epi32(c1));
    _mm256_storeu_si256((__m256i *)(word + 2 * WIDTH), _mm512_cvtepi64_epi32(c2));
    _mm256_storeu_si256((__m256i *)(word + 3 * WIDTH), _mm512_cvtepi64_epi32(c3));
}

static void philox_group(uint32_t word[WORDS], uint32_t first, uint32_t stream,
                         const struct dropout_draw *draw)
{
    philox_eight(word, first, stream, draw);
    philox_eight(word + 8, first + 8, stream, draw);
}
#else
static void philox_group(uint32_t word[WORDS], uint32_t first, uint32_t stream,
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
    for (int round = 0; round < ROUNDS; round++, k0 += W0, k1 += W1)
        for (int i = 0; i < WIDTH; i++) {
            uint64_t left = (uint64_t)c0[i] * M0, right = (uint64_t)c2[i] * M1;
            c0[i] = (uint32_t)(right >> 32) ^ c1[i] ^ k0;
            c2[i] = (uint32_t)(left >> 32) ^ c3[i] ^ k1;
            c1[i] = (uint32_t)right;
            c3[i] = (uint32_t)left;
        }
}
#endif

static void group_factors(real factor[GROUP], const uint32_t word[WORDS], uint32_t threshold, real kept)
{
    for (int w = 0; w < WORDS; w += WIDTH)
        for (int i = 0; i < WIDTH; i++) {
            factor[2 * w + i] = (word[w + i] & 0xffff) < threshold ? 0 : kept;
            factor[2 * w + WIDTH + i] = word[w + i] >> 16 < threshold ? 0 : kept;
        }
}

static void apply(real *restrict y, real *restrict mask, const real *restrict factor, int64_t size)
{
    for (int64_t i = 0; i < size; i++) {
        mask[i] = factor[i];
        y[i] *= factor[i];
    }
}

void LOOPS(dropout)(real *y, real *mask, int64_t first, int64_t count, uint32_t stream,
                    const struct dropout_draw *draw)
{
    uint32_t threshold = (uint32_t)fmin(draw->probability * 65536 + 0.5, 65535);
    real kept =
        (real)(65536.0 / (65536.0 - threshold)); /* of the probability there is, so that the mean is kept */
    int64_t done = 0;

    while (done < count) {
        int64_t group = (first + done) / GROUP, offset = (first + done) % GROUP;
        int64_t size = GROUP - offset < count - done ? GROUP - offset : count - done;
        uint32_t word[WORDS];
        real factor[GROUP];

        philox_group(word, (uint32_t)(group * WIDTH), stream, draw);
        group_factors(factor, word, threshold, kept);
        apply(y + done, mask + done, factor + offset, size);
        done += size;
    }
}
