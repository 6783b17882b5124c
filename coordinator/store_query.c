/* One door for the questions of people, whether asked of a file or of a live coordinator. */
#include "coordinator/store.h"

#include "base/text.h"

#include <string.h>

static const char *const queries[] = {"leaderboard", "show", "list", NULL};

static int unknown_query(const char *query, struct error *err)
{
    const char *nearest = nearest_word(query, queries);
    return error_set(err, ERROR_USAGE, "unknown query '%.100s'%s%s%s; leaderboard, show and list are known",
                     query, nearest != NULL ? " (did you mean '" : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "'?)" : "");
}

json_t *store_answer(struct store *store, const char *sweep_id, const char *query, const json_t *body,
                     struct error *err)
{
    if (query != NULL && strcmp(query, "list") == 0) {
        return store_list(store, err);
    }
    if (query != NULL && strcmp(query, "leaderboard") == 0) {
        struct leaderboard_query asked = {.where = json_get_string(body, "where", NULL),
                                          .sort = json_get_string(body, "sort", NULL),
                                          .top = json_get_integer(body, "top", 0)};
        return store_leaderboard(store, json_get_string(body, "sweep", sweep_id), &asked, err);
    }
    if (query != NULL && strcmp(query, "show") == 0) {
        return store_trial(store, json_get_string(body, "sweep", sweep_id),
                           json_get_integer(body, "trial", -1), err);
    }
    unknown_query(query != NULL ? query : "", err);
    return NULL;
}
