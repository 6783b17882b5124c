/* An array of places, and a hash table from routing ids to places. Both are rebuilt when they are full:
 * silent peers out, and twice as large if that made too little room. */
#include "coordinator/server_peers.h"

#include "base/random.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64

void peers_init(struct peers *peers, int64_t silence_ns)
{
    *peers = (struct peers){.silence_ns = silence_ns};
}

void peers_release(struct peers *peers)
{
    free(peers->addresses);
    free(peers->table);
    peers_init(peers, peers->silence_ns);
}

static bool address_is(const struct peer_address *address, uint8_t socket, const struct peer *peer)
{
    return address->socket == socket && peer_equal(&address->peer, peer);
}

static uint64_t peer_hash(uint8_t socket, const struct peer *peer)
{
    return fnv1a64(peer->id, peer->size) + socket;
}

/* The place of a peer in the table: its own, or the free one where it belongs. */
static uint32_t *place_find(const struct peers *peers, uint8_t socket, const struct peer *peer)
{
    size_t at = peer_hash(socket, peer) & (peers->table_size - 1);
    while (peers->table[at] != 0 && !address_is(&peers->addresses[peers->table[at] - 1], socket, peer)) {
        at = (at + 1) & (peers->table_size - 1);
    }
    return &peers->table[at];
}

static void table_fill(struct peers *peers)
{
    memset(peers->table, 0, peers->table_size * sizeof *peers->table);
    for (size_t i = 0; i < peers->capacity; i++) {
        const struct peer_address *address = &peers->addresses[i];
        if (address->is_used) {
            *place_find(peers, address->socket, &address->peer) = (uint32_t)i + 1;
        }
    }
}

static void forget_silent(struct peers *peers, int64_t now_ns)
{
    for (size_t i = 0; i < peers->capacity; i++) {
        struct peer_address *address = &peers->addresses[i];
        if (address->is_used && now_ns - address->heard_ns > peers->silence_ns) {
            address->is_used = false;
            address->changes++;
            peers->count--;
        }
    }
}

static int grow(struct peers *peers)
{
    size_t capacity = peers->capacity ? 2 * peers->capacity : FIRST_CAPACITY;
    struct peer_address *addresses =
        capacity < UINT32_MAX ? realloc(peers->addresses, capacity * sizeof *addresses) : NULL;
    if (!addresses) {
        return -1;
    }
    memset(addresses + peers->capacity, 0, (capacity - peers->capacity) * sizeof *addresses);
    peers->addresses = addresses;
    peers->capacity = capacity;
    uint32_t *table = realloc(peers->table, 2 * capacity * sizeof *table);
    if (!table) {
        return -1; /* the array is larger than need be; the table stays as it was */
    }
    peers->table = table;
    peers->table_size = 2 * capacity;
    return 0;
}

/* At least one free place, and the table at most half full. Work is done only when all places are taken, and
 * frees half of them or doubles them: amortised, each new peer costs a constant. */
static int make_room(struct peers *peers, int64_t now_ns)
{
    if (2 * (peers->count + 1) <= peers->table_size && peers->count < peers->capacity) {
        return 0;
    }
    forget_silent(peers, now_ns);
    int result = 2 * peers->count >= peers->capacity ? grow(peers) : 0;
    if (peers->table_size > 0) {
        table_fill(peers);
    }
    return result == 0 || 2 * (peers->count + 1) <= peers->table_size ? 0 : -1;
}

static size_t free_place(const struct peers *peers)
{
    size_t at = peers->count % peers->capacity; /* right while nobody was forgotten */
    while (peers->addresses[at].is_used) {
        at = (at + 1) % peers->capacity;
    }
    return at;
}

static peer_number number_of(const struct peers *peers, size_t index)
{
    return (peer_number)peers->addresses[index].changes << 32 | (index + 1);
}

peer_number peers_number(struct peers *peers, uint8_t socket, const struct peer *peer, int64_t now_ns)
{
    if (peers->table_size > 0) {
        uint32_t known = *place_find(peers, socket, peer);
        if (known != 0) {
            peers->addresses[known - 1].heard_ns = now_ns;
            return number_of(peers, known - 1);
        }
    }
    if (make_room(peers, now_ns)) {
        return 0;
    }
    size_t index = free_place(peers);
    uint32_t *place = place_find(peers, socket, peer);
    struct peer_address *address = &peers->addresses[index];
    *address = (struct peer_address){
        .peer = *peer,
        .socket = socket,
        .is_used = true,
        .changes = address->changes,
        .heard_ns = now_ns,
    };
    peers->count++;
    *place = (uint32_t)index + 1;
    return number_of(peers, index);
}

const struct peer_address *peers_address(const struct peers *peers, peer_number number)
{
    size_t index = (size_t)(number & UINT32_MAX) - 1;
    bool is_known = index < peers->capacity && peers->addresses[index].is_used &&
                    peers->addresses[index].changes == number >> 32;
    return is_known ? &peers->addresses[index] : NULL;
}
