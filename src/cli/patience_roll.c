/*
 * Names of sockets are abstract (unix(7)): they go with the process. They are of the job, the user and the place on the
 * node; whoever else sends here can make a rank seem there, no more.
 */
#include "cli/patience_roll.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"

enum { CALL = '?', ANSWER = '!', NAMED_RANKS = 8, HOST_BYTES = 64 };
static const double answer_s = 0.5;

typedef struct letter {
    int32_t word, from;
} letter;

/* The first of some variables that holds a number; -1: none does. */
static int find_number(const char *const *names)
{
    for (; *names; names++) {
        const char *text = getenv(*names);
        if (text && *text) {
            return (int)strtol(text, NULL, 10);
        }
    }
    return -1;
}

/* Where the launcher does not name the job, its own process on the node does. */
static uint64_t hash_job(void)
{
    const char *job = getenv("PMIX_NAMESPACE");
    uint64_t hash = cvy_hash_word(CVY_HASH_INIT, (uint64_t)getuid());
    return job ? cvy_hash_text(hash, job) : cvy_hash_word(hash, (uint64_t)getppid());
}

static socklen_t find_address(const cli_roll *roll, int rank, struct sockaddr_un *address)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "convoy-%016llx-%d",
                          (unsigned long long)roll->job, rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

void cli_roll_open(cli_roll *roll_out)
{
    static const char *const own[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", NULL};
    static const char *const ranks[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", NULL};
    static const char *const all[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
    struct sockaddr_un address;
    *roll_out = (cli_roll){.descriptor = -1, .own = find_number(own), .ranks = find_number(ranks), .job = hash_job()};
    roll_out->whole = roll_out->ranks == find_number(all);
    if (roll_out->own < 0 || roll_out->own >= roll_out->ranks || roll_out->ranks > CLI_ROLL_RANKS) {
        return;
    }
    socklen_t bytes = find_address(roll_out, roll_out->own, &address);
    roll_out->descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (roll_out->descriptor >= 0 && bind(roll_out->descriptor, (struct sockaddr *)&address, bytes) != 0) {
        cli_roll_close(roll_out);
    }
    roll_out->there[roll_out->own] = true;
}

static void say(const cli_roll *roll, int word, int to)
{
    struct sockaddr_un address;
    socklen_t bytes = find_address(roll, to, &address);
    letter l = {.word = word, .from = roll->own};
    ssize_t sent = sendto(roll->descriptor, &l, sizeof l, MSG_NOSIGNAL, (struct sockaddr *)&address, bytes);
    (void)sent; /* nobody may be there */
}

static void read_letters(cli_roll *roll)
{
    letter l;
    while (recv(roll->descriptor, &l, sizeof l, 0) == (ssize_t)sizeof l) {
        if (l.from < 0 || l.from >= roll->ranks) {
            continue;
        }
        if (l.word == CALL) {
            say(roll, ANSWER, l.from);
        } else if (l.word == ANSWER) {
            roll->there[l.from] = true;
        }
    }
}

void cli_roll_hear(cli_roll *roll, int wake, double seconds)
{
    double end_s = cvy_clock_s() + seconds, left_s = seconds;
    struct pollfd wait[] = {{.fd = wake, .events = POLLIN}, {.fd = roll->descriptor, .events = POLLIN}};
    while (left_s > 0 && poll(wait, 2, (int)(1e3 * left_s) + 1) > 0 && !wait[0].revents) {
        read_letters(roll);
        left_s = end_s - cvy_clock_s();
    }
}

void cli_roll_call(cli_roll *roll, int wake)
{
    for (int i = 0; i < roll->ranks && roll->descriptor >= 0; i++) {
        if (i != roll->own) {
            roll->there[i] = false;
            say(roll, CALL, i);
        }
    }
    cli_roll_hear(roll, wake, answer_s);
}

int cli_roll_word_missing(const cli_roll *roll, size_t bytes, char *text_out)
{
    char host[HOST_BYTES] = "", list[NAMED_RANKS * 8] = "";
    int count = 0, length = 0;
    for (int i = 0; i < roll->ranks && roll->descriptor >= 0; i++) {
        if (!roll->there[i] && count++ < NAMED_RANKS) {
            length += snprintf(list + length, sizeof list - (size_t)length, count > 1 ? ", %d" : "%d", i);
        }
    }
    gethostname(host, sizeof host - 1);
    snprintf(text_out, bytes, "%srank%s %s%s%s%s", roll->whole ? "" : "local ", count > 1 ? "s" : "", list,
             count > NAMED_RANKS ? ", ..." : "", roll->whole ? "" : " of ", roll->whole ? "" : host);
    return count;
}

bool cli_roll_is_first(const cli_roll *roll)
{
    for (int i = 0; i < roll->own && roll->descriptor >= 0; i++) {
        if (roll->there[i]) {
            return false;
        }
    }
    return true;
}

void cli_roll_close(cli_roll *roll)
{
    if (roll->descriptor >= 0) {
        close(roll->descriptor);
    }
    roll->descriptor = -1;
}
