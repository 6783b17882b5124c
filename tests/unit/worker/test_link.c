/* Lines of the link: whole, in pieces, huge, empty, nonsense, and a closed other side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/link.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct pair {
    struct link link;
    int other; /* the other end, written to byte by byte */
};

static int setup(void **state)
{
    int fds[2];
    struct pair *pair = calloc(1, sizeof *pair);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    link_init(&pair->link, fds[0]);
    pair->other = fds[1];
    *state = pair;
    return 0;
}

static int teardown(void **state)
{
    struct pair *pair = *state;
    close(pair->link.fd);
    link_release(&pair->link);
    if (pair->other >= 0) {
        close(pair->other);
    }
    free(pair);
    return 0;
}

static void put(struct pair *pair, const char *text)
{
    assert_int_equal(write(pair->other, text, strlen(text)), (int)strlen(text));
}

static void expect_number(struct pair *pair, int number)
{
    json_t *message = NULL;
    assert_int_equal(link_receive(&pair->link, &message, NULL), 1);
    assert_int_equal(json_get_integer(message, "n", -1), number);
    json_decref(message);
}

static void expect_nothing(struct pair *pair)
{
    json_t *message = NULL;
    assert_int_equal(link_receive(&pair->link, &message, NULL), 0);
}

static void expect_failure(struct pair *pair, enum error_code code)
{
    json_t *message = NULL;
    struct error err = {0};
    assert_int_equal(link_receive(&pair->link, &message, &err), -1);
    assert_int_equal(err.code, code);
}

static void test_several_lines_at_once(void **state)
{
    put(*state, "{\"type\":\"a\",\"n\":1}\n{\"type\":\"a\",\"n\":2}\n{\"type\":\"a\",");
    expect_number(*state, 1);
    expect_number(*state, 2);
    expect_nothing(*state);
    put(*state, "\"n\":3}\n");
    expect_number(*state, 3);
    expect_nothing(*state);
}

static void test_a_line_in_pieces_of_one_byte(void **state)
{
    const char line[] = "{\"type\":\"report\",\"text\":\"\\n\\u00e9\",\"n\":4}\n";
    for (size_t i = 0; i < sizeof line - 1; i++) {
        expect_nothing(*state);
        char byte[2] = {line[i], '\0'};
        put(*state, byte);
    }
    expect_number(*state, 4);
}

/* Any cutting of a stream gives the same messages. */
static void test_random_cuts(void **state)
{
    struct pair *pair = *state;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    srand(seed);
    char stream[4096] = "";
    int count = 0;
    while (strlen(stream) < sizeof stream - 300) {
        snprintf(stream + strlen(stream), 300, "{\"type\":\"x\",\"n\":%d,\"pad\":\"%.*s\"}\n", count,
                 rand() % 200,
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                 "aaaaaaaaaa"
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                 "aaaaaaaaa");
        count++;
    }
    int got = 0;
    for (size_t sent = 0; sent < strlen(stream);) {
        size_t part = (size_t)rand() % 97 + 1;
        part = part < strlen(stream) - sent ? part : strlen(stream) - sent;
        assert_int_equal(write(pair->other, stream + sent, part), (int)part);
        sent += part;
        json_t *message = NULL;
        int result;
        while ((result = link_receive(&pair->link, &message, NULL)) == 1) {
            assert_int_equal(json_get_integer(message, "n", -1), got++);
            json_decref(message);
        }
        assert_int_equal(result, 0);
    }
    assert_int_equal(got, count);
}

struct sender {
    int fd;
    size_t size;
};

static void *send_bytes(void *argument)
{
    struct sender *sender = argument;
    char *bytes = malloc(sender->size);
    memset(bytes, 'a', sender->size);
    for (size_t sent = 0; sent < sender->size;) {
        ssize_t count = send(sender->fd, bytes + sent, sender->size - sent, MSG_NOSIGNAL);
        if (count <= 0) {
            break;
        }
        sent += (size_t)count;
    }
    free(bytes);
    return NULL;
}

static void test_a_line_without_end_is_refused(void **state)
{
    struct pair *pair = *state;
    struct sender sender = {pair->other, LINK_LINE_LIMIT + 100000};
    pthread_t thread;
    json_t *message = NULL;
    struct error err = {0};
    int result;
    assert_int_equal(pthread_create(&thread, NULL, send_bytes, &sender), 0);
    while ((result = link_receive(&pair->link, &message, &err)) == 0) {
    }
    assert_int_equal(result, -1);
    assert_int_equal(err.code, ERROR_PROTOCOL);
    shutdown(pair->link.fd, SHUT_RDWR);
    pthread_join(thread, NULL);
}

static void *send_line(void *argument)
{
    struct link link;
    json_t *line = json_pack("{s:s,s:i,s:o}", "type", "big", "n", 7, "pad", json_array());
    for (int i = 0; i < 400000; i++) {
        json_array_append_new(json_object_get(line, "pad"), json_integer(i));
    }
    link_init(&link, *(int *)argument);
    assert_int_equal(link_send(&link, line, NULL), 0);
    link_release(&link);
    json_decref(line);
    return NULL;
}

static void test_a_huge_line_goes_through_both_ways(void **state)
{
    struct pair *pair = *state;
    pthread_t thread;
    json_t *message = NULL;
    int result;
    fcntl(pair->other, F_SETFL, O_NONBLOCK); /* the sender waits for room */
    assert_int_equal(pthread_create(&thread, NULL, send_line, &pair->other), 0);
    while ((result = link_receive(&pair->link, &message, NULL)) == 0) {
    }
    pthread_join(thread, NULL);
    assert_int_equal(result, 1);
    assert_int_equal(json_array_size(json_object_get(message, "pad")), 400000);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(message, "pad"), 399999)), 399999);
    json_decref(message);
}

static void test_a_reader_that_sleeps_times_out(void **state)
{
    struct pair *pair = *state;
    json_t *line = json_pack("{s:s,s:s}", "type", "x", "pad", "0123456789012345678901234567890123456789");
    struct error err = {0};
    pair->link.send_timeout_ms = 20;
    int result = 0;
    for (int i = 0; i < 1000000 && result == 0; i++) {
        result = link_send(&pair->link, line, &err);
    }
    assert_int_equal(result, -1);
    assert_int_equal(err.code, ERROR_CONNECT);
    json_decref(line);
}

static void test_nonsense(void **state)
{
    static const char *const lines[] = {
        "no JSON\n",           "\n",         "[1,2]\n", "{\"n\":1}\n", "{\"type\":3}\n", "{\"type\":\"a\"\n",
        "{\"type\":\"a\"}}\n", "\xff\xfe\n", NULL};
    for (int i = 0; lines[i]; i++) {
        put(*state, lines[i]);
        expect_failure(*state, ERROR_PROTOCOL);
    }
    put(*state, "{\"type\":\"a\",\"n\":5}\n"); /* the line after is itself again */
    expect_number(*state, 5);
}

static void test_a_zero_byte_is_nonsense(void **state)
{
    struct pair *pair = *state;
    assert_int_equal(write(pair->other, "{\"type\":\"a\"}\0x\n", 15), 15);
    expect_failure(pair, ERROR_PROTOCOL);
}

static void test_a_closed_link(void **state)
{
    struct pair *pair = *state;
    put(pair, "{\"type\":\"a\",\"n\":6}\n{\"type\":\"half");
    close(pair->other);
    pair->other = -1;
    expect_number(pair, 6); /* what was whole counts */
    expect_failure(pair, ERROR_CONNECT);
    json_t *line = json_pack("{s:s}", "type", "x");
    struct error err = {0};
    assert_int_equal(link_send(&pair->link, line, &err), -1); /* and no SIGPIPE */
    assert_int_equal(err.code, ERROR_CONNECT);
    json_decref(line);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_several_lines_at_once),
        CASE(test_a_line_in_pieces_of_one_byte),
        CASE(test_random_cuts),
        CASE(test_a_line_without_end_is_refused),
        CASE(test_a_huge_line_goes_through_both_ways),
        CASE(test_a_reader_that_sleeps_times_out),
        CASE(test_nonsense),
        CASE(test_a_zero_byte_is_nonsense),
        CASE(test_a_closed_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
