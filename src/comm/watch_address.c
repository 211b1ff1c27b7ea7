/*
 * Where a rank can be reached. All addresses are IPv6 on one socket that takes both; those of IPv4 in their mapped form
 * (RFC 4291, 2.5.5.2). Where the system has no IPv6 the socket is of IPv4. Ranks of one boot and one network namespace
 * use the loopback, which no firewall closes.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "comm/watch_internal.h"

static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static uint64_t hash_host(void)
{
    char boot[64] = "";
    struct stat space = {.st_ino = 0};
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file) {
        size_t bytes = fread(boot, 1, sizeof boot - 1, file);
        boot[bytes] = '\0';
        fclose(file);
    }
    if (boot[0] == '\0' && gethostname(boot, sizeof boot - 1) != 0) {
        return 0;
    }
    uint64_t hash = CVY_HASH_INIT;
    for (const char *at = boot; *at; at++) {
        hash = cvy_hash_byte(hash, (uint8_t)*at);
    }
    if (stat("/proc/self/ns/net", &space) != 0) {
        return 0;
    }
    return cvy_hash_word(hash, (uint64_t)space.st_ino);
}

static void add_address(cvy_watch_record *record, const struct sockaddr *address)
{
    if (record->addresses == CVY_WATCH_ADDRESSES) {
        return;
    }
    unsigned char *to = record->address[record->addresses];
    if (address->sa_family == AF_INET) {
        memcpy(to, mapped, sizeof mapped);
        memcpy(to + sizeof mapped, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
        record->addresses++;
    } else if (address->sa_family == AF_INET6) {
        const struct in6_addr *wide = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        if (!IN6_IS_ADDR_LINKLOCAL(wide)) { /* which mean nothing without the name of an interface */
            memcpy(to, wide, 16);
            record->addresses++;
        }
    }
}

static void list_addresses(cvy_watch_record *record)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0) {
        return;
    }
    for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
        if (one->ifa_addr && (one->ifa_flags & IFF_UP) && !(one->ifa_flags & IFF_LOOPBACK)) {
            add_address(record, one->ifa_addr);
        }
    }
    freeifaddrs(all);
}

/* A socket that never blocks; *wide: whether it is of IPv6. */
static int open_socket(bool *wide)
{
    int off = 0, kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    int descriptor = socket(AF_INET6, kind, 0);
    *wide = descriptor >= 0;
    if (*wide) {
        setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        return descriptor;
    }
    return socket(AF_INET, kind, 0);
}

static int take_port(int descriptor, bool wide)
{
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};
    struct sockaddr_in any4 = {.sin_family = AF_INET};
    struct sockaddr_storage taken;
    socklen_t bytes = sizeof taken;
    int failed = wide ? bind(descriptor, (struct sockaddr *)&any6, sizeof any6)
                      : bind(descriptor, (struct sockaddr *)&any4, sizeof any4);
    if (failed || listen(descriptor, SOMAXCONN) || getsockname(descriptor, (struct sockaddr *)&taken, &bytes)) {
        return 0;
    }
    return ntohs(wide ? ((struct sockaddr_in6 *)&taken)->sin6_port : ((struct sockaddr_in *)&taken)->sin_port);
}

int cvy_watch_listen(cvy_watch_record *record_out)
{
    bool wide;
    memset(record_out, 0, sizeof *record_out);
    record_out->host = hash_host();
    int descriptor = open_socket(&wide);
    if (descriptor < 0) {
        return -1;
    }
    record_out->port = (uint16_t)take_port(descriptor, wide);
    if (record_out->port == 0) {
        close(descriptor);
        return -1;
    }
    list_addresses(record_out);
    return descriptor;
}

int cvy_watch_choices(const cvy_watch_record *to, bool same_host)
{
    int addresses = to->addresses < CVY_WATCH_ADDRESSES ? to->addresses : CVY_WATCH_ADDRESSES;
    return to->port ? addresses + same_host : 0;
}

/* The i-th address to try, the loopback first where it leads there. */
static void choose_address(const cvy_watch_record *to, bool same_host, int i, unsigned char address[16])
{
    if (same_host && i == 0) {
        memcpy(address, mapped, sizeof mapped);
        memcpy(address + sizeof mapped, (const unsigned char[]){127, 0, 0, 1}, 4);
    } else {
        memcpy(address, to->address[i - same_host], 16);
    }
}

int cvy_watch_connect(const cvy_watch_record *to, bool same_host, int i)
{
    bool wide;
    int descriptor = open_socket(&wide);
    struct sockaddr_in6 there6 = {.sin6_family = AF_INET6, .sin6_port = htons(to->port)};
    struct sockaddr_in there4 = {.sin_family = AF_INET, .sin_port = htons(to->port)};
    choose_address(to, same_host, i, there6.sin6_addr.s6_addr);
    memcpy(&there4.sin_addr, there6.sin6_addr.s6_addr + sizeof mapped, 4);
    if (descriptor >= 0) { /* how it goes shows where it is first used */
        int begun = wide ? connect(descriptor, (struct sockaddr *)&there6, sizeof there6)
                         : connect(descriptor, (struct sockaddr *)&there4, sizeof there4);
        (void)begun;
    }
    return descriptor;
}
