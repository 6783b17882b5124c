/* The data loader against damaged tables: whatever the bytes, it answers with a sound dataset or a message.
 * Mutations are drawn from one printed seed: `fuzz_data SEED [SECONDS]` replays a run. Meant for the
 * sanitizer build. */
#include "base/random.h"
#include "worker/training/data.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BYTES 4096

/* Inputs to start from; those with zero bytes say their size. */
struct seed {
    const char *bytes;
    size_t size; /* 0: to the first zero byte */
};
#define TEXT(text)                                                                                           \
    {                                                                                                        \
        .bytes = text                                                                                        \
    }
#define BYTES_OF(text)                                                                                       \
    {                                                                                                        \
        text, sizeof text - 1                                                                                \
    }

static const struct seed seeds[] = {
    TEXT("a,b,label\n1,2,x\n2,3,y\n3,5,x\n4,4,y\n5,1,x\n6,9,y\n7,7,x\n"),
    TEXT("a;b;y\n0,5;1,5;2\n1,5;2,5;3,25\n2,5;3,5;1,5\n3,5;4,5;7,75\n-1,5;0;9\n"),
    TEXT("\"q \"\"a\"\"\",\"two\nlines\",c\r\nred,1,yes\r\nblue,2,no\r\nred,3,yes\r\n?,4,no\r\n\r\n"
         "00501,5,yes\r\n"),
    TEXT("1 2 3 0\n2 3  4 1\n3 4 5\t0\n4 5 6 1\n 5 6 7 0 \n"),
    TEXT("\xef\xbb\xbf"
         "x\ty\n1e5\t.5\n1.\t\xe2\x88\x92"
         "2\n+3\t-\n4\tNA\n5\tinf\n"),
    BYTES_OF("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03K\xd4I\xe2\x02\x00"),
    TEXT("day,p,q,a\n2024-01-01,0,1,3\n2024-01-02,1,0,4\n2024-01-03,0,1,5\n2024-01-04,1,0,6\n"
         "2024-01-05,0,1,7\n2024-01-06,1,0,8\n2024-01-07,0,1,3\n"),
    TEXT("1 qid:1 1:0.5 3:2\n0 qid:1 2:1\n1 qid:2 1:7 # x\n0 qid:2 3:4\n1 qid:3 1:1 2:1\n0 qid:3\n"),
    BYTES_OF("\0\0\x08\x02\0\0\0\x06\0\0\0\x03"
             "abacbcbbadceacfedg"),
    BYTES_OF("\0\0\x0d\x03\0\0\0\x03\0\0\0\x01\0\0\0\x02"
             "@\0\0\0?\x80\0\0@@\0\0?\0\0\0@\x80\0\0\0\0\0\0"),
    BYTES_OF("\x93NUMPY\x01\0\x3d\0{'descr': '<i2', 'fortran_order': True, 'shape': (6, 2), }  \n"
             "\1\0\2\0\3\0\4\0\5\0\6\0\1\0\2\0\1\0\2\0\1\0\2\0"),
};
static const char *const pieces[] = {
    "3:", "qid:",  "1:2 ",    "2024-02-30", "(6, 2)", "True",    ">f8",  "'",        "$",
    "%",  "1,234", "1.234",   "# ",         "Total",  "sep=;\n", "\xe9", "-999",     "\xe2\x82\xac",
    ",",  ";",     "\t",      " ",          "\n",     "\r\n",    "\r",   "\"",       "\"\"",
    "?",  "NA",    "nan",     "-",          "1e999",  "0x1",     "\xff", "\xc2\xa0", "\xe2\x88\x92",
    "00", "1",     "-9.5e-3", "label",      ",,,,",   "\n\n"};
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
    "{\"target\":null,\"deduplicate\":true}",
    "{\"target\":[\"p\",\"q\"],\"time\":\"day\",\"deduplicate\":true}",
    "{\"target\":-1,\"time\":0}",
    "{\"target\":-1,\"group\":0}",
    "{\"target\":-1,\"format\":\"idx\"}",
    "{\"target\":0,\"format\":\"npy\",\"task\":\"regression\"}",
    "{\"format\":\"libsvm\",\"validation\":0.4}",
    "{\"labels\":\"second\"}",
    "{\"target\":-1,\"test_path\":\"second\"}",
    "{\"target\":[1,2],\"test_path\":\"second\",\"group\":\"day\"}",
    "{\"test_path\":\"second\",\"labels\":\"second\"}",
    "{\"target\":1,\"test_path\":\"second\",\"test_labels\":\"second\"}",
    "{\"labels\":\"second\",\"test_path\":\"second\",\"test_labels\":\"second\",\"drop\":0}",
    "{\"target\":-1,\"drop\":[0,\"day\"],\"missing\":[-0.5],\"deduplicate\":true}",
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
    int64_t class_rows = 0;
    for (int64_t c = 0; c < dataset->classes; c++)
        class_rows += dataset->class_rows[c];
    if (dataset->classes && class_rows != dataset->rows[SPLIT_TRAIN])
        return "class rows do not add up";
    const json_t *features = json_object_get(dataset->preprocessing, "features");
    return (int64_t)json_array_size(features) == dataset->features ? NULL : "preprocessing does not fit";
}

/* Writes a mutated seed; false when that cannot be done. */
static bool write_input(struct draws *draws, const char *path, const struct seed *start)
{
    char bytes[BYTES + 1];
    size_t size = start->size ? start->size : strlen(start->bytes);
    memcpy(bytes, start->bytes, size);
    for (uint32_t count = draw(draws, 5); count > 0; count--)
        size = mutate(draws, bytes, size);
    FILE *file = fopen(path, "wb");
    bool written = file && fwrite(bytes, 1, size, file) == size;
    return (!file || fclose(file) == 0) && written;
}

static const char *try_once(struct draws *draws, const char *path, const char *second, int64_t *loaded)
{
    uint32_t count = sizeof seeds / sizeof *seeds;
    const struct seed *start = &seeds[draw(draws, count)];
    /* Mostly two files that may fit together. */
    const struct seed *other = draw(draws, 3) ? start : &seeds[draw(draws, count)];
    if (!write_input(draws, path, start) || !write_input(draws, second, other))
        return "cannot write the input";
    const char *text = options[draw(draws, sizeof options / sizeof *options)];
    json_t *data = json_parse(text, strlen(text), NULL);
    json_object_set_new(data, "path", json_string("first"));
    struct dataset dataset = {0};
    struct error err = {0};
    const char *fault = NULL;
    struct data_files files = {.path = path, .labels = second, .test_path = second, .test_labels = second};
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
    char path[] = "/tmp/fuzz-data-XXXXXX", second[] = "/tmp/fuzz-data-XXXXXX";
    int fd = mkstemp(path), second_fd = mkstemp(second);
    if (fd < 0 || second_fd < 0)
        return 1;
    close(fd);
    close(second_fd);
    printf("seed %llu\n", (unsigned long long)draws.seed);
    fflush(stdout);
    int64_t loaded = 0;
    const char *fault = NULL;
    for (clock_t start = clock(); !fault && (double)(clock() - start) < seconds * CLOCKS_PER_SEC;
         draws.round++) {
        draws.count = 0;
        fault = try_once(&draws, path, second, &loaded);
    }
    unlink(path);
    unlink(second);
    printf("%u inputs, %lld loaded\n", draws.round, (long long)loaded);
    return fault || loaded == 0;
}
