/* A hash table from routing ids to numbers, and an array back. Entries stay: a routing id is 5 bytes, and a
 * peer that comes back gets a new one. */
#include "coordinator/server_peers.h"

#include "base/random.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_TABLE 64

void peers_init(struct peers *peers)
{
    *peers = (struct peers){0};
}

void peers_release(struct peers *peers)
{
    free(peers->addresses);
    free(peers->table);
    peers_init(peers);
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
static uint64_t *place_find(const struct peers *peers, uint8_t socket, const struct peer *peer)
{
    size_t at = peer_hash(socket, peer) & (peers->table_size - 1);
    while (peers->table[at] != 0 && !address_is(&peers->addresses[peers->table[at] - 1], socket, peer)) {
        at = (at + 1) & (peers->table_size - 1);
    }
    return &peers->table[at];
}

static int table_grow(struct peers *peers)
{
    if (2 * (peers->count + 1) <= peers->table_size) {
        return 0;
    }
    size_t size = peers->table_size ? 2 * peers->table_size : FIRST_TABLE;
    uint64_t *table = calloc(size, sizeof *table);
    if (!table) {
        return -1;
    }
    free(peers->table);
    peers->table = table;
    peers->table_size = size;
    for (size_t i = 0; i < peers->count; i++) {
        *place_find(peers, peers->addresses[i].socket, &peers->addresses[i].peer) = i + 1;
    }
    return 0;
}

static int addresses_grow(struct peers *peers)
{
    if (peers->count < peers->capacity) {
        return 0;
    }
    size_t capacity = peers->capacity ? 2 * peers->capacity : FIRST_TABLE;
    struct peer_address *addresses = realloc(peers->addresses, capacity * sizeof *addresses);
    if (!addresses) {
        return -1;
    }
    peers->addresses = addresses;
    peers->capacity = capacity;
    return 0;
}

peer_number peers_number(struct peers *peers, uint8_t socket, const struct peer *peer)
{
    if (peers->table_size > 0) {
        uint64_t known = *place_find(peers, socket, peer);
        if (known != 0) {
            return known;
        }
    }
    if (table_grow(peers) || addresses_grow(peers)) {
        return 0;
    }
    uint64_t *place = place_find(peers, socket, peer);
    peers->addresses[peers->count++] = (struct peer_address){.peer = *peer, .socket = socket};
    return *place = peers->count;
}

const struct peer_address *peers_address(const struct peers *peers, peer_number number)
{
    return number >= 1 && number <= peers->count ? &peers->addresses[number - 1] : NULL;
}
