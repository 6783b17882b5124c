/* Lines in, lines out. Input is kept in one buffer: [0, parsed) was given out, [parsed, searched) holds no
 * newline, so every byte is looked at once even when a line arrives in many pieces. */
#include "worker/link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_SIZE 65536

void link_init(struct link *link, int fd)
{
    memset(link, 0, sizeof *link);
    link->fd = fd;
    link->send_timeout_ms = -1;
    text_init(&link->input);
}

void link_release(struct link *link)
{
    text_release(&link->input);
    link->fd = -1;
}

/* Drops what was given out, so that the buffer holds at most one unfinished line. */
static void link_compact(struct link *link)
{
    if (link->parsed == 0) {
        return;
    }
    size_t rest = link->input.size - link->parsed;
    memmove(link->input.data, link->input.data + link->parsed, rest);
    link->input.size = rest;
    link->input.data[rest] = '\0';
    link->searched -= link->parsed;
    link->parsed = 0;
}

static int link_parse(struct link *link, size_t line_size, json_t **message, struct error *err)
{
    const char *line = link->input.data + link->parsed;
    json_t *value = json_parse(line, line_size, err);
    if (!value) {
        return error_prefix(err, "link");
    }
    if (!json_is_object(value) || !json_is_string(json_object_get(value, "type"))) {
        json_decref(value);
        return error_set(err, ERROR_PROTOCOL, "link: a line is not an object with a type");
    }
    *message = value;
    return 1;
}

/* 1: a message; 0: no whole line in the buffer; -1 err. */
static int link_next(struct link *link, json_t **message, struct error *err)
{
    if (link->input.size > link->searched) {
        const char *from = link->input.data + link->searched;
        const char *newline = memchr(from, '\n', link->input.size - link->searched);
        if (newline) {
            size_t line_size = (size_t)(newline - (link->input.data + link->parsed));
            int result = link_parse(link, line_size, message, err);
            link->parsed += line_size + 1;
            link->searched = link->parsed;
            return result;
        }
        link->searched = link->input.size;
    }
    if (link->input.size - link->parsed > LINK_LINE_LIMIT) {
        return error_set(err, ERROR_PROTOCOL, "link: a line is longer than %u bytes", LINK_LINE_LIMIT);
    }
    return 0;
}

int link_receive(struct link *link, json_t **message, struct error *err)
{
    for (;;) {
        int result = link_next(link, message, err);
        if (result != 0) {
            return result;
        }
        link_compact(link);
        char buffer[READ_SIZE];
        ssize_t count = read(link->fd, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return 0;
        }
        if (count < 0) {
            return error_set(err, ERROR_CONNECT, "link: %s", strerror(errno));
        }
        if (count == 0) {
            return error_set(err, ERROR_CONNECT, "link: closed");
        }
        text_append_bytes(&link->input, buffer, (size_t)count);
        if (link->input.failed) {
            return error_set(err, ERROR_MEMORY, "link: no memory for a line");
        }
    }
}

static int link_wait_for_room(const struct link *link, struct error *err)
{
    struct pollfd wait = {.fd = link->fd, .events = POLLOUT};
    int ready = poll(&wait, 1, link->send_timeout_ms);
    if (ready == 0) {
        return error_set(err, ERROR_CONNECT, "link: the other side does not read");
    }
    if (ready < 0 && errno != EINTR) {
        return error_set(err, ERROR_CONNECT, "link: %s", strerror(errno));
    }
    return 0;
}

int link_send(struct link *link, const json_t *message, struct error *err)
{
    struct text line;
    text_init(&line);
    json_append(&line, message);
    text_append(&line, "\n");
    int result = 0;
    if (line.failed) {
        result = error_set(err, ERROR_MEMORY, "link: no memory for a line");
    } else if (line.size > LINK_LINE_LIMIT) {
        result = error_set(err, ERROR_PROTOCOL, "link: a line is longer than %u bytes", LINK_LINE_LIMIT);
    }
    for (size_t sent = 0; result == 0 && sent < line.size;) {
        ssize_t count = send(link->fd, line.data + sent, line.size - sent, MSG_NOSIGNAL);
        if (count >= 0) {
            sent += (size_t)count;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            result = link_wait_for_room(link, err);
        } else if (errno != EINTR) {
            result = error_set(err, ERROR_CONNECT, "link: %s", strerror(errno));
        }
    }
    text_release(&line);
    return result;
}
