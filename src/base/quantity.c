/*
 * One table of units for reading and printing. A value is the number times the scale of its unit, rounded once, so what
 * was printed with enough digits reads back to the same bits; the unit of scale 1 always has such a text.
 */
#include "base/quantity.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct unit {
    const char *name;
    double scale;
} unit;

/* The unit of scale 1 stands first. Both signs of micro: the one of keyboards and the Greek letter. */
static const unit times[] = {
    {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"\302\265s", 1e-6}, {"\316\274s", 1e-6}, {"ns", 1e-9}, {"min", 60},
    {"h", 3600}, {NULL, 0},
};
static const unit sizes[] = {
    {"B", 1},           {"kB", 1e3},           {"MB", 1e6},           {"GB", 1e9},           {"TB", 1e12},
    {"PB", 1e15},       {"EB", 1e18},          {"KiB", 0x1p10},       {"MiB", 0x1p20},       {"GiB", 0x1p30},
    {"TiB", 0x1p40},    {"PiB", 0x1p50},       {NULL, 0},
};
static const unit bandwidths[] = {
    {"B/s", 1},         {"kB/s", 1e3},         {"MB/s", 1e6},         {"GB/s", 1e9},         {"TB/s", 1e12},
    {"PB/s", 1e15},     {"KiB/s", 0x1p10},     {"MiB/s", 0x1p20},     {"GiB/s", 0x1p30},     {"TiB/s", 0x1p40},
    {"kbit/s", 1e3 / 8}, {"Mbit/s", 1e6 / 8},  {"Gbit/s", 1e9 / 8},   {"Tbit/s", 1e12 / 8},  {NULL, 0},
};
static const unit rates[] = {
    {"FLOP/s", 1},      {"kFLOP/s", 1e3},      {"MFLOP/s", 1e6},      {"GFLOP/s", 1e9},      {"TFLOP/s", 1e12},
    {"PFLOP/s", 1e15},  {"EFLOP/s", 1e18},     {NULL, 0},
};
static const unit prices[] = {{"USD/h", 1}, {NULL, 0}};

static const struct {
    const unit *units;
    const char *expected;
} kinds[] = {
    [CVY_QUANTITY_TIME] = {times, "a time with its unit, as 1.5 us, 30 ms or 2 h"},
    [CVY_QUANTITY_SIZE] = {sizes, "a size with its unit, as 16 GiB, 25 MB or 4096 B"},
    [CVY_QUANTITY_BANDWIDTH] = {bandwidths, "a bandwidth with its unit, as 25 GB/s or 100 Gbit/s"},
    [CVY_QUANTITY_RATE] = {rates, "a rate with its unit, as 15.7 TFLOP/s"},
    [CVY_QUANTITY_PRICE] = {prices, "a price with its unit, as 2.48 USD/h"},
};

const char *cvy_quantity_expected(cvy_quantity kind) { return kinds[kind].expected; }

/* A decimal number at the start of a text; NULL where there is none. Words ("inf") and hexadecimal are none. */
static const char *parse_number(const char *text, double *number)
{
    const char *first = text + (*text == '-' || *text == '+');
    first += *first == '.';
    if (!isdigit((unsigned char)*first) || strncasecmp(first, "0x", 2) == 0) {
        return NULL;
    }
    char *end;
    *number = strtod(text, &end);
    return end;
}

bool cvy_quantity_parse(const char *text, cvy_quantity kind, double *value_out)
{
    double number;
    const char *name = text ? parse_number(text, &number) : NULL;
    if (!name) {
        return false;
    }
    name += strspn(name, " ");
    for (const unit *u = kinds[kind].units; u->name; u++) {
        if (strcmp(u->name, name) == 0 && isfinite(number * u->scale)) {
            *value_out = number * u->scale;
            return true;
        }
    }
    return false;
}

/* The shortest text in one unit that reads back; false where there is none, or none without an exponent if @p plain. */
static bool print_in_unit(double value, const unit *in, cvy_quantity kind, bool plain, char *text)
{
    for (int digits = 1; digits <= 17; digits++) {
        double back;
        snprintf(text, CVY_QUANTITY_TEXT, "%.*g %s", digits, value / in->scale, in->name);
        bool exponent = text[strspn(text, "-.0123456789")] == 'e';
        if (!(plain && exponent) && cvy_quantity_parse(text, kind, &back) && back == value) {
            return true;
        }
    }
    return false;
}

const char *cvy_quantity_print(double value, cvy_quantity kind, char *text)
{
    char found[CVY_QUANTITY_TEXT];
    text[0] = '\0';
    for (int plain = 1; plain >= 0 && !text[0]; plain--) {
        for (const unit *in = kinds[kind].units; in->name; in++) {
            if (print_in_unit(value, in, kind, plain, found) && (!text[0] || strlen(found) < strlen(text))) {
                snprintf(text, CVY_QUANTITY_TEXT, "%s", found);
            }
        }
    }
    return text;
}
