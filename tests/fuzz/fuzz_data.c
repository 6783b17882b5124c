/* The data loader against damaged tables: whatever the bytes, it answers with a sound dataset or a message.
 * Mutations are drawn from one printed seed: `fuzz_data SEED [SECONDS]` replays a run. Meant for the
 * sanitizer build. */
#include "base/random.h"
#include "worker/training/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BYTES 4096

static const char *const seeds[] = {
    "a,b,label\n1,2,x\n2,3,y\n3,5,x\n4,4,y\n5,1,x\n6,9,y\n7,7,x\n",
    "a;b;y\n0,5;1,5;2\n1,5;2,5;3,25\n2,5;3,5;1,5\n3,5;4,5;7,75\n-1,5;0;9\n",
    "\"q "
    "\"\"a\"\"\",\"two\nlines\",c\r\nred,1,yes\r\nblue,2,no\r\nred,3,yes\r\n?,4,no\r\n\r\n00501,5,yes\r\n",
    "1 2 3 0\n2 3  4 1\n3 4 5\t0\n4 5 6 1\n 5 6 7 0 \n",
    "\xef\xbb\xbf"
    "x\ty\n1e5\t.5\n1.\t\xe2\x88\x92"
    "2\n+3\t-\n4\tNA\n5\tinf\n",
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03K\xd4I\xe2\x02\x00",
};
static const char *const pieces[] = {"'",     "$",       "%",     "1,234",    "1.234",        "# ",
                                     "Total", "sep=;\n", "\xe9",  "-999",     "\xe2\x82\xac", ",",
                                     ";",     "\t",      " ",     "\n",       "\r\n",         "\r",
                                     "\"",    "\"\"",    "?",     "NA",       "nan",          "-",
                                     "1e999", "0x1",     "\xff",  "\xc2\xa0", "\xe2\x88\x92", "00",
                                     "1",     "-9.5e-3", "label", ",,,,",     "\n\n"};
static const char *const options[] = {
    "{\"target\":-1}",
    "{\"target\":\"label\"}",
    "{\"target\":0,\"header\":true}",
    "{\"target\":1,\"header\":\"false\",\"task\":\"classification\"}",
    "{\"target\":-1,\"task\":\"regression\",\"test\":0,\"validation\":0.4}",
    "{\"target\":-2,\"delimiter\":\"blanks\",\"missing\":\"1\"}",
    "{\"target\":-1,\"preprocess\":\"quantile\",\"max_categories\":2}",
    "{\"target\":-1,\"preprocess\":\"robust\",\"missing\":[-1,\"x\"],\"max_categories\":3}",
    "{\"target\":-1,\"preprocess\":\"none\"}",
};

struct draws {
    uint64_t seed;
    uint32_t round, count;
};

static uint32_t draw(struct draws *draws, uint32_t bound)
{
    return philox4x32(draws->seed, draws->round, draws->count++, 0, 0).word[0] % bound;
}

static size_t insert(char *bytes, size_t size, size_t at, const char *piece, size_t count)
{
    if (size + count > BYTES)
        return size;
    memmove(bytes + at + count, bytes + at, size - at);
    memcpy(bytes + at, piece, count);
    return size + count;
}

static size_t mutate(struct draws *draws, char *bytes, size_t size)
{
    size_t at = draw(draws, (uint32_t)size + 1);
    size_t count = size - at ? draw(draws, (uint32_t)(size - at)) % 40 : 0;
    switch (draw(draws, 5)) {
    case 0: { /* a piece with a meaning */
        const char *piece = pieces[draw(draws, sizeof pieces / sizeof *pieces)];
        return insert(bytes, size, at, piece, strlen(piece));
    }
    case 1: /* a byte */
        if (at < size)
            bytes[at] = (char)draw(draws, 256);
        return size;
    case 2: /* cut */
        memmove(bytes + at, bytes + at + count, size - at - count);
        return size - count;
    case 3: { /* again, elsewhere */
        char copy[64];
        memcpy(copy, bytes + at, count);
        return insert(bytes, size, draw(draws, (uint32_t)size + 1), copy, count);
    }
    default: /* the end is missing */
        return draw(draws, 20) ? size : at;
    }
}

/* What every dataset promises its users. */
static const char *fault_of(const struct dataset *dataset)
{
    if (dataset->features + dataset->categories < 1 || dataset->rows[SPLIT_TRAIN] < 2)
        return "too small";
    if ((dataset->task == TASK_CLASSIFICATION) != (dataset->classes >= 2))
        return "task and classes disagree";
    for (int split = 0; split < SPLIT_COUNT; split++) {
        for (int64_t i = 0; i < dataset->rows[split] * dataset->features; i++)
            if (!isfinite(dataset->x[split][i]))
                return "x is not finite";
        for (int64_t i = 0; i < dataset->rows[split] * dataset->categories; i++)
            if (dataset->category[split][i] < 0 ||
                dataset->category[split][i] >= dataset->cardinality[i % dataset->categories])
                return "a category is out of range";
        for (int64_t i = 0; i < dataset->rows[split]; i++) {
            if (dataset->classes &&
                (dataset->label[split][i] < 0 || dataset->label[split][i] >= dataset->classes))
                return "label out of range";
            if (!dataset->classes && !isfinite(dataset->y[split][i]))
                return "y is not finite";
        }
    }
    const json_t *features = json_object_get(dataset->preprocessing, "features");
    return (int64_t)json_array_size(features) == dataset->features ? NULL : "preprocessing does not fit";
}

static const char *try_once(struct draws *draws, const char *path, int64_t *loaded)
{
    char bytes[BYTES + 1];
    const char *start = seeds[draw(draws, sizeof seeds / sizeof *seeds)];
    size_t size = *start == '\x1f' ? 17 : strlen(start);
    memcpy(bytes, start, size);
    for (uint32_t count = draw(draws, 5); count > 0; count--)
        size = mutate(draws, bytes, size);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        return "cannot write the input";
    const char *text = options[draw(draws, sizeof options / sizeof *options)];
    json_t *data = json_parse(text, strlen(text), NULL);
    struct dataset dataset = {0};
    struct error err = {0};
    const char *fault = NULL;
    struct data_files files = {.path = path};
    int failed = draw(draws, 2) ? dataset_load(&dataset, data, &files, draws->round, &err)
                                : dataset_load_refit(&dataset, data, &files, draws->round, &err);
    if (!failed) {
        fault = fault_of(&dataset);
        dataset_release(&dataset);
        ++*loaded;
    } else if (err.code != ERROR_USAGE || !*err.message) {
        fprintf(stderr, "error %d: %s\n", err.code, err.message);
        fault = "not a message to the user";
    }
    json_decref(data);
    if (fault)
        fprintf(stderr, "seed %llu round %u: %s\n", (unsigned long long)draws->seed, draws->round, fault);
    return fault;
}

int main(int count, char **arguments)
{
    struct draws draws = {.seed = count > 1 ? strtoull(arguments[1], NULL, 10) : (uint64_t)time(NULL)};
    double seconds = count > 2 ? atof(arguments[2]) : 2;
    char path[] = "/tmp/fuzz-data-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    printf("seed %llu\n", (unsigned long long)draws.seed);
    fflush(stdout);
    int64_t loaded = 0;
    const char *fault = NULL;
    for (clock_t start = clock(); !fault && (double)(clock() - start) < seconds * CLOCKS_PER_SEC;
         draws.round++) {
        draws.count = 0;
        fault = try_once(&draws, path, &loaded);
    }
    unlink(path);
    printf("%u inputs, %lld loaded\n", draws.round, (long long)loaded);
    return fault || loaded == 0;
}
