/*
 * Messages over a socket that never blocks. What the other side does not take stays queued, and where the queue is full
 * (it was stopped, and does not read) later messages are dropped: each says all anew.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/watch_internal.h"

void cvy_watch_link_clear(cvy_watch_link *link)
{
    memset(link, 0, sizeof *link);
    link->descriptor = link->peer = -1;
    link->own.rank = -1;
    cvy_watch_report_one(&link->own, &link->report);
}

void cvy_watch_link_close(cvy_watch_link *link)
{
    if (link->descriptor >= 0) {
        close(link->descriptor);
    }
    link->descriptor = -1;
}

void cvy_watch_link_flush(cvy_watch_link *link)
{
    while (link->descriptor >= 0 && link->out_bytes > 0) {
        ssize_t sent = send(link->descriptor, link->out, link->out_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return; /* it is full; or broken, as a receive will tell */
        }
        link->out_bytes -= (size_t)sent;
        memmove(link->out, link->out + sent, link->out_bytes);
    }
}

bool cvy_watch_link_send(cvy_watch_link *link, const cvy_watch_message *message)
{
    cvy_watch_link_flush(link);
    if (link->descriptor < 0 || link->out_bytes + sizeof *message > sizeof link->out) {
        return false;
    }
    memcpy(link->out + link->out_bytes, message, sizeof *message);
    link->out_bytes += sizeof *message;
    cvy_watch_link_flush(link);
    return true;
}

cvy_watch_got cvy_watch_link_receive(cvy_watch_link *link, cvy_watch_message *message_out)
{
    while (link->descriptor >= 0) {
        ssize_t got = recv(link->descriptor, link->in + link->in_bytes, sizeof link->in - link->in_bytes, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return CVY_WATCH_GOT_NOTHING;
        }
        if (got <= 0) {
            return CVY_WATCH_GOT_END;
        }
        link->in_bytes += (size_t)got;
        if (link->in_bytes == sizeof link->in) {
            link->in_bytes = 0;
            memcpy(message_out, link->in, sizeof *message_out);
            return CVY_WATCH_GOT_MESSAGE;
        }
    }
    return CVY_WATCH_GOT_NOTHING;
}
