/* Philox 4x32-10: constants and rounds of Salmon et al., SC'11, section 3.3 and its table 2. */
#include "base/random.h"

#define PHILOX_M0 0xD2511F53u
#define PHILOX_M1 0xCD9E8D57u
#define PHILOX_W0 0x9E3779B9u /* golden ratio */
#define PHILOX_W1 0xBB67AE85u /* sqrt(3) - 1 */
#define PHILOX_ROUNDS 10
#define DRAW_STEP 65536u

struct philox philox4x32(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t product0 = (uint64_t)PHILOX_M0 * c0;
        uint64_t product1 = (uint64_t)PHILOX_M1 * c2;
        c0 = (uint32_t)(product1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(product0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)product1;
        c3 = (uint32_t)product0;
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    return (struct philox){{c0, c1, c2, c3}};
}

uint64_t fnv1a64(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * 0x100000001B3u;
    return hash;
}

static struct philox block_at(uint64_t seed, uint32_t trial, uint64_t name_hash, uint32_t draw)
{
    return philox4x32(seed, trial, (uint32_t)name_hash, (uint32_t)(name_hash >> 32), draw);
}

static uint64_t join(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

double random_unit(uint64_t seed, uint32_t trial, uint64_t name_hash, uint32_t draw)
{
    struct philox block = block_at(seed, trial, name_hash, draw);
    uint64_t bits = join(block.word[0], block.word[1]) >> 12;
    return ((double)bits + 0.5) * 0x1p-52;
}

uint64_t random_below(uint64_t seed, uint32_t trial, uint64_t name_hash, uint32_t draw, uint64_t bound)
{
    /* 2^64 mod bound numbers at the low end have one chance more than the others' remainders: reject them.
     * Each number is rejected with a probability below 1/2, so the loop ends. */
    uint64_t reject = (0 - bound) % bound;
    for (;; draw += DRAW_STEP) {
        struct philox block = block_at(seed, trial, name_hash, draw);
        for (int pair = 0; pair < 4; pair += 2) {
            uint64_t number = join(block.word[pair], block.word[pair + 1]);
            if (number >= reject)
                return number % bound;
        }
    }
}
