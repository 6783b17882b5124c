/* The split that keeps groups whole; see data_split.h.
 *
 * Greedy: what part p lacks of class c is its share of the class less what it has. Adding g rows to n of t
 * wanted changes ((n - t) / t)^2, summed over classes with their sizes as weights, by g (2 (n - t) + g) / t
 * up to a factor that all parts share; the part with the least sum takes the group. All rows together count
 * as one more class. Products and quotients of whole numbers only, so that every machine decides alike. */
#include "worker/training/data_split.h"

#include "base/random.h"
#include "worker/training/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PURPOSE_GROUPS 0x67727073u /* "grps": keeps these words apart from others of the same seed */

struct bundle {
    int64_t group, size;
    uint64_t word;
    int64_t first; /* where the group's counts begin in deal->count */
    int64_t kinds; /* classes it has */
    bool dealt;
};

struct count {
    int32_t class;
    int64_t rows;
};

struct deal {
    int64_t groups, classes;    /* classes: 1 more, for all rows */
    struct bundle *bundle;      /* (groups) in the order dealt */
    struct count *count;        /* classes of each group, one group behind the other */
    int64_t *wanted, *taken;    /* (SPLIT_COUNT, classes) rows */
    unsigned char *part_of;     /* (groups) */
    int64_t dealt[SPLIT_COUNT]; /* groups */
};

static int log2_of(int64_t size)
{
    int log = 0;
    while (size >>= 1)
        log++;
    return log;
}

static int bundle_compare(const void *a, const void *b)
{
    const struct bundle *x = a, *y = b;
    int large = log2_of(x->size), small = log2_of(y->size);
    if (large != small)
        return small - large;
    if (x->word != y->word)
        return (x->word > y->word) - (x->word < y->word);
    return (x->group > y->group) - (x->group < y->group);
}

static int row_compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b; /* group, class */
    if (x[0] != y[0])
        return (x[0] > y[0]) - (x[0] < y[0]);
    return (x[1] > y[1]) - (x[1] < y[1]);
}

/* Counts rows by group and class: sorted pairs, run by run. */
static int count_groups(struct deal *deal, const int32_t *group, const int32_t *label, int64_t rows,
                        uint64_t seed)
{
    int64_t(*pair)[2] = malloc((size_t)rows * sizeof *pair);
    if (!pair)
        return -1;
    for (int64_t row = 0; row < rows; row++) {
        pair[row][0] = group[row];
        pair[row][1] = label ? label[row] : 0;
    }
    qsort(pair, (size_t)rows, sizeof *pair, row_compare);
    struct bundle *bundle = NULL;
    int64_t at = -1;
    deal->groups = 0;
    for (int64_t i = 0; i < rows; i++) {
        bool new_group = i == 0 || pair[i][0] != pair[i - 1][0];
        if (new_group || pair[i][1] != pair[i - 1][1])
            deal->count[++at] = (struct count){(int32_t)pair[i][1], 0};
        if (new_group) {
            uint32_t number = (uint32_t)pair[i][0];
            struct philox words = philox4x32(seed, number, 0, PURPOSE_GROUPS, 0);
            bundle = &deal->bundle[deal->groups++];
            *bundle = (struct bundle){.group = pair[i][0], .first = at};
            bundle->word = (uint64_t)words.word[0] << 32 | words.word[1];
        }
        deal->count[at].rows++;
        bundle->size++;
        bundle->kinds = at - bundle->first + 1;
    }
    free(pair);
    qsort(deal->bundle, (size_t)deal->groups, sizeof *deal->bundle, bundle_compare);
    return 0;
}

static void set_shares(struct deal *deal, const int32_t *label, int64_t rows,
                       const struct split_options *options)
{
    int64_t classes = deal->classes;
    int64_t *total = deal->wanted; /* the training part's share comes last, out of what is left */
    for (int64_t row = 0; row < rows && label; row++)
        total[label[row]]++;
    total[classes - 1] = rows;
    for (int64_t c = 0; c < classes; c++) {
        int64_t test = llround((double)total[c] * options->test);
        int64_t validation = llround((double)total[c] * options->validation);
        deal->wanted[SPLIT_TEST * classes + c] = test;
        deal->wanted[SPLIT_VALIDATION * classes + c] = validation;
        total[c] -= test + validation;
    }
}

static double cost_of(const struct deal *deal, const struct bundle *bundle, int part)
{
    const int64_t *wanted = deal->wanted + part * deal->classes, *taken = deal->taken + part * deal->classes;
    double cost = 0;
    for (int64_t k = -1; k < bundle->kinds; k++) {
        const struct count *count = &deal->count[bundle->first + k];
        int64_t c = k < 0 ? deal->classes - 1 : count->class, rows = k < 0 ? bundle->size : count->rows;
        int64_t share = wanted[c] > 0 ? wanted[c] : 1;
        cost += (double)(rows * (2 * (taken[c] - share) + rows)) / (double)share;
    }
    return cost;
}

static void give(struct deal *deal, struct bundle *bundle, int part)
{
    int64_t *taken = deal->taken + part * deal->classes;
    for (int64_t k = 0; k < bundle->kinds && deal->classes > 1; k++)
        taken[deal->count[bundle->first + k].class] += deal->count[bundle->first + k].rows;
    taken[deal->classes - 1] += bundle->size;
    deal->part_of[bundle->group] = (unsigned char)part;
    deal->dealt[part]++;
    bundle->dealt = true;
}

/* A class that one group alone has must be in training; so must, of others, at least one group. The smallest
 * groups serve, as they bind least. */
static void keep_classes(struct deal *deal)
{
    for (int64_t c = 0; c < deal->classes - 1; c++) {
        struct bundle *least = NULL;
        if (deal->taken[SPLIT_TRAIN * deal->classes + c] > 0)
            continue;
        for (int64_t i = 0; i < deal->groups; i++) {
            struct bundle *bundle = &deal->bundle[i];
            bool has = false;
            for (int64_t k = 0; k < bundle->kinds && !has; k++)
                has = deal->count[bundle->first + k].class == c;
            if (has && (!least || bundle->size < least->size))
                least = bundle;
        }
        if (least && !least->dealt)
            give(deal, least, SPLIT_TRAIN);
    }
}

static void deal_groups(struct deal *deal, bool test)
{
    int64_t left = 0;
    for (int64_t i = 0; i < deal->groups; i++)
        left += !deal->bundle[i].dealt;
    for (int64_t i = 0; i < deal->groups; i++) {
        struct bundle *bundle = &deal->bundle[i];
        int best = -1, empty = 0;
        double least = 0;
        if (bundle->dealt)
            continue;
        for (int part = 0; part < SPLIT_COUNT; part++)
            empty += deal->dealt[part] == 0 && (part != SPLIT_TEST || test);
        for (int part = 0; part < SPLIT_COUNT; part++) {
            /* The last groups go to parts that have none yet. */
            if ((part == SPLIT_TEST && !test) || (left <= empty && deal->dealt[part] > 0))
                continue;
            double cost = cost_of(deal, bundle, part);
            if (best < 0 || cost < least) {
                best = part;
                least = cost;
            }
        }
        give(deal, bundle, best);
        left--;
    }
}

static void release(struct deal *deal)
{
    free(deal->bundle);
    free(deal->count);
    free(deal->wanted);
    free(deal->taken);
    free(deal->part_of);
}

int split_groups(unsigned char *part, const int32_t *group, int64_t groups, const int32_t *label,
                 int64_t classes, int64_t rows, const struct split_options *options, struct error *err)
{
    struct deal deal = {.classes = (label ? classes : 0) + 1};
    size_t cells = (size_t)(SPLIT_COUNT * deal.classes);
    deal.bundle = malloc((size_t)groups * sizeof *deal.bundle);
    deal.count = malloc((size_t)rows * sizeof *deal.count);
    deal.wanted = calloc(cells, sizeof *deal.wanted);
    deal.taken = calloc(cells, sizeof *deal.taken);
    deal.part_of = calloc((size_t)groups, 1);
    if (!deal.bundle || !deal.count || !deal.wanted || !deal.taken || !deal.part_of ||
        count_groups(&deal, group, label, rows, options->seed) < 0) {
        release(&deal);
        return error_set(err, ERROR_MEMORY, "no memory to split %lld rows", (long long)rows);
    }
    set_shares(&deal, label, rows, options);
    keep_classes(&deal);
    deal_groups(&deal, options->test > 0);
    for (int64_t row = 0; row < rows; row++)
        part[row] = deal.part_of[group[row]];
    int64_t count = deal.groups;
    release(&deal);
    if (split_check(part, rows, options->test, err) == 0)
        return 0;
    return error_prefix(err, "data.group: %lld groups that stay whole", (long long)count);
}
