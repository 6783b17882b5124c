/* A treap with subtree sizes (Seidel and Aragon 1996, "Randomized Search Trees"). Nodes lie in one array by
 * trial number; links are indices, so growing the array moves nothing that is pointed at. */
#include "search/ranking.h"

#include <stdlib.h>
#include <string.h>

struct ranking_node {
    struct entry_key key;
    uint32_t left, right;
    uint32_t size; /* entries of the subtree; 0: this trial has no entry */
    uint32_t open; /* open ones among them */
    bool is_open;
};

bool entry_better(const struct entry_key *left, const struct entry_key *right)
{
    if (left->class != right->class)
        return left->class < right->class;
    if (left->value != right->value)
        return left->value < right->value;
    return left->tie < right->tie;
}

bool entry_before(const struct entry_key *left, int64_t left_trial, const struct entry_key *right,
                  int64_t right_trial)
{
    if (entry_better(left, right))
        return true;
    return !entry_better(right, left) && left_trial < right_trial;
}

void ranking_release(struct ranking *ranking)
{
    free(ranking->nodes);
    *ranking = (struct ranking){0};
}

int ranking_reserve(struct ranking *ranking, int64_t trial)
{
    if (trial < ranking->capacity)
        return 0;
    int64_t capacity = ranking->capacity ? ranking->capacity * 2 : 64;
    while (capacity <= trial)
        capacity *= 2;
    if (capacity > UINT32_MAX)
        return -1;
    struct ranking_node *nodes = realloc(ranking->nodes, (size_t)capacity * sizeof *nodes);
    if (!nodes)
        return -1;
    memset(nodes + ranking->capacity, 0, (size_t)(capacity - ranking->capacity) * sizeof *nodes);
    ranking->nodes = nodes;
    ranking->capacity = capacity;
    return 0;
}

/* splitmix64's finaliser: a heap order that has nothing to do with the order of trials or values. */
static uint64_t priority(uint32_t trial)
{
    uint64_t bits = trial * 0x9E3779B97F4A7C15u;
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
    return bits ^ bits >> 31;
}

static bool node_before(const struct ranking_node *nodes, uint32_t left, uint32_t right)
{
    return entry_before(&nodes[left].key, left, &nodes[right].key, right);
}

static void node_update(struct ranking_node *nodes, uint32_t at)
{
    struct ranking_node *node = &nodes[at];
    node->size = 1 + nodes[node->left].size + nodes[node->right].size;
    node->open = (node->is_open ? 1 : 0) + nodes[node->left].open + nodes[node->right].open;
}

/* Parts the tree at `root` into what comes before and after entry `at`. */
static void split(struct ranking_node *nodes, uint32_t root, uint32_t at, uint32_t *before, uint32_t *after)
{
    if (!root) {
        *before = *after = 0;
        return;
    }
    if (node_before(nodes, root, at)) {
        split(nodes, nodes[root].right, at, &nodes[root].right, after);
        *before = root;
    } else {
        split(nodes, nodes[root].left, at, before, &nodes[root].left);
        *after = root;
    }
    node_update(nodes, root);
}

/* Joins two trees, all of `before` ahead of all of `after`. */
static uint32_t join(struct ranking_node *nodes, uint32_t before, uint32_t after)
{
    if (!before || !after)
        return before ? before : after;
    uint32_t root;
    if (priority(before) > priority(after)) {
        root = before;
        nodes[root].right = join(nodes, nodes[root].right, after);
    } else {
        root = after;
        nodes[root].left = join(nodes, before, nodes[root].left);
    }
    node_update(nodes, root);
    return root;
}

static uint32_t insert(struct ranking_node *nodes, uint32_t root, uint32_t at)
{
    if (!root || priority(at) > priority(root)) {
        split(nodes, root, at, &nodes[at].left, &nodes[at].right);
        root = at;
    } else if (node_before(nodes, at, root)) {
        nodes[root].left = insert(nodes, nodes[root].left, at);
    } else {
        nodes[root].right = insert(nodes, nodes[root].right, at);
    }
    node_update(nodes, root);
    return root;
}

static uint32_t cut(struct ranking_node *nodes, uint32_t root, uint32_t at)
{
    if (root == at)
        return join(nodes, nodes[at].left, nodes[at].right);
    if (node_before(nodes, at, root))
        nodes[root].left = cut(nodes, nodes[root].left, at);
    else
        nodes[root].right = cut(nodes, nodes[root].right, at);
    node_update(nodes, root);
    return root;
}

static bool has_entry(const struct ranking *ranking, int64_t trial)
{
    return trial > 0 && trial < ranking->capacity && ranking->nodes[trial].size > 0;
}

void ranking_insert(struct ranking *ranking, int64_t trial, const struct entry_key *key, bool open)
{
    if (trial < 1 || trial >= ranking->capacity || has_entry(ranking, trial))
        return;
    ranking->nodes[trial] =
        (struct ranking_node){.key = *key, .size = 1, .open = open ? 1 : 0, .is_open = open};
    ranking->root = insert(ranking->nodes, ranking->root, (uint32_t)trial);
}

void ranking_close(struct ranking *ranking, int64_t trial)
{
    if (!has_entry(ranking, trial) || !ranking->nodes[trial].is_open)
        return;
    struct ranking_node *nodes = ranking->nodes;
    uint32_t at = ranking->root, target = (uint32_t)trial;
    nodes[target].is_open = false;
    while (at != target) {
        nodes[at].open--;
        at = node_before(nodes, target, at) ? nodes[at].left : nodes[at].right;
    }
    nodes[target].open--;
}

void ranking_remove(struct ranking *ranking, int64_t trial)
{
    if (!has_entry(ranking, trial))
        return;
    ranking->root = cut(ranking->nodes, ranking->root, (uint32_t)trial);
    ranking->nodes[trial] = (struct ranking_node){0};
}

int64_t ranking_size(const struct ranking *ranking)
{
    return ranking->root ? ranking->nodes[ranking->root].size : 0;
}

int64_t ranking_better(const struct ranking *ranking, const struct entry_key *key)
{
    const struct ranking_node *nodes = ranking->nodes;
    int64_t better = 0;
    uint32_t at = ranking->root;
    while (at) {
        if (entry_better(&nodes[at].key, key)) {
            better += 1 + nodes[nodes[at].left].size;
            at = nodes[at].right;
        } else {
            at = nodes[at].left;
        }
    }
    return better;
}

int64_t ranking_first_open(const struct ranking *ranking, int64_t *place)
{
    const struct ranking_node *nodes = ranking->nodes;
    uint32_t at = ranking->root;
    *place = 0;
    while (at && nodes[at].open) {
        uint32_t left = nodes[at].left;
        if (nodes[left].open) {
            at = left;
        } else if (nodes[at].is_open) {
            *place += nodes[left].size;
            return at;
        } else {
            *place += 1 + nodes[left].size;
            at = nodes[at].right;
        }
    }
    return 0;
}
