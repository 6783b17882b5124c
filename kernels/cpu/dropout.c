/* Dropout: Philox 4x32-10 (Salmon et al., SC'11) for 16 counters at a time. */
#include "kernels/cpu/stored.h"

#include <string.h>

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
static void philox_eight(uint32_t *word, uint32_t first, uint32_t stream, const struct lane_state *state)
{
    const __m512i m0 = _mm512_set1_epi64(M0), m1 = _mm512_set1_epi64(M1);
    __m512i c0 = _mm512_add_epi64(_mm512_set1_epi64(first), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
    __m512i c1 = _mm512_setzero_si512(), c2 = _mm512_set1_epi64((uint32_t)state->step),
            c3 = _mm512_set1_epi64(stream);
    uint32_t k0 = (uint32_t)state->key, k1 = (uint32_t)(state->key >> 32);

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
                         const struct lane_state *state)
{
    philox_eight(word, first, stream, state);
    philox_eight(word + 8, first + 8, stream, state);
}
#else
static void philox_group(uint32_t word[WORDS], uint32_t first, uint32_t stream,
                         const struct lane_state *state)
{
    uint32_t k0 = (uint32_t)state->key, k1 = (uint32_t)(state->key >> 32);
    uint32_t *c0 = word, *c1 = c0 + WIDTH, *c2 = c1 + WIDTH, *c3 = c2 + WIDTH;

    for (int i = 0; i < WIDTH; i++) {
        c0[i] = first + (uint32_t)i;
        c1[i] = 0;
        c2[i] = (uint32_t)state->step;
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

static void group_masks(unsigned char mask[GROUP], const uint32_t word[WORDS], uint32_t threshold)
{
    for (int w = 0; w < WORDS; w += WIDTH)
        for (int i = 0; i < WIDTH; i++) {
            mask[2 * w + i] = (word[w + i] & 0xffff) >= threshold;
            mask[2 * w + WIDTH + i] = word[w + i] >> 16 >= threshold;
        }
}

static void apply(real *restrict y, const unsigned char *restrict mask, real factor, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        y[i] *= (real)mask[i] * factor;
}

/* The masks of `count` elements from `first` on. */
static void draw_masks(unsigned char *mask, int64_t first, int64_t count, uint32_t stream,
                       const struct lane_state *state)
{
    uint32_t threshold = dropout_threshold(state);

    for (int64_t done = 0; done < count;) {
        int64_t group = (first + done) / GROUP, offset = (first + done) % GROUP;
        int64_t size = GROUP - offset < count - done ? GROUP - offset : count - done;
        uint32_t word[WORDS];
        unsigned char drawn[GROUP];

        philox_group(word, (uint32_t)(group * WIDTH), stream, state);
        group_masks(drawn, word, threshold);
        memcpy(mask + done, drawn + offset, (size_t)size);
        done += size;
    }
}

void LOOPS(dropout)(void *y, unsigned char *mask, int64_t first, int64_t count, uint32_t stream,
                    const struct lane_state *state, enum device_precision precision)
{
    real factor = dropout_factor(state);

    draw_masks(mask, first, count, stream, state);
    for (int64_t at = 0, size; at < count; at += size) {
        real block[STRETCH];
        size = stretch_of(count - at, precision);
        stored_read(block, y, at, size, precision);
        real *kept = stored_open(block, y, at, precision);
        apply(kept, mask + at, factor, size);
        stored_close(y, at, kept, size, precision);
    }
}
