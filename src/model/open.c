/* What a user writes, as a model: a file, or a zoo name whose options become YAML and go the way of all options. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/model.h"

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static cvy_status fail_unknown(const char *name)
{
    enum { MOST = 100 };
    const char *names[MOST + 1];
    char word[CVY_WORD_TEXT];
    int count = 0;
    for (const cvy_zoo_entry *entry; count < MOST && (entry = cvy_zoo_get(count)); count++) {
        names[count] = entry->name;
    }
    names[count] = NULL;
    const char *nearest = cvy_nearest(name, names);
    cvy_print_word(name, word);
    if (nearest) {
        return cvy_fail(CVY_ERR_INPUT, "no model '%s' in the zoo; did you mean '%s'?", word, nearest);
    }
    cvy_text list = {0};
    for (int i = 0; i < count; i++) {
        cvy_text_add(&list, "%s%s", i ? ", " : "", names[i]);
    }
    char *known = cvy_text_take(&list);
    if (!known) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status =
        cvy_fail(CVY_ERR_INPUT, "no model '%s' in the zoo (%s); a file's name ends in .yaml", word, known);
    cvy_free(known);
    return status;
}

/* The entry that a text names, with or without options. */
static const cvy_zoo_entry *find_entry(const char *text)
{
    size_t length = strcspn(text, ":");
    const cvy_zoo_entry *entry;
    for (int i = 0; (entry = cvy_zoo_get(i)); i++) {
        if (strlen(entry->name) == length && strncmp(entry->name, text, length) == 0) {
            break;
        }
    }
    return entry;
}

static cvy_status need_entry(const char *text, const cvy_zoo_entry **entry_out)
{
    size_t length = strcspn(text, ":");
    *entry_out = find_entry(text);
    if (*entry_out) {
        return CVY_OK;
    }
    char *name = cvy_calloc(length + 1, 1);
    if (!name) {
        return CVY_ERR_MEMORY;
    }
    memcpy(name, text, length);
    cvy_status status = fail_unknown(name);
    cvy_free(name);
    return status;
}

/* "a=1,b=[2,3]" as "{a: 1,b: [2,3]}". Only letters that cannot say anything else in YAML are let through. */
static cvy_status write_yaml(const char *text, char **yaml_out)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._[],=";
    char word[CVY_WORD_TEXT];
    cvy_text yaml = {0};
    bool in_value = false, whole = strspn(text, allowed) == strlen(text) && strlen(text) < 4096;
    int depth = 0;
    cvy_text_add(&yaml, "{");
    for (const char *c = text; *c && whole; c++) {
        depth += (*c == '[') - (*c == ']');
        bool ends = *c == ',' && depth == 0;
        whole = depth >= 0 && depth <= 2 && (ends ? in_value : *c != '=' || !in_value);
        in_value = ends ? false : in_value || *c == '=';
        cvy_text_add(&yaml, "%c%s", *c == '=' ? ':' : *c, *c == '=' ? " " : "");
    }
    cvy_text_add(&yaml, "}");
    char *taken = cvy_text_take(&yaml);
    if (!taken) {
        return CVY_ERR_MEMORY;
    }
    if (!whole || !in_value || depth) {
        cvy_free(taken);
        return cvy_fail(CVY_ERR_INPUT, "options '%s', expected key=value,key=[a,b]", cvy_print_word(text, word));
    }
    *yaml_out = taken;
    return CVY_OK;
}

static cvy_status parse_options(const cvy_zoo_entry *entry, const char *text, void *options)
{
    cvy_status status = CVY_OK;
    cvy_yaml *yaml = NULL;
    char *written = NULL;
    if (text) {
        CVY_TRY_GOTO(status, done, write_yaml(text, &written));
        CVY_TRY_GOTO(status, done, cvy_yaml_parse(NULL, written, strlen(written), &yaml));
    }
    CVY_TRY_GOTO(status, done, cvy_fields_parse(entry->fields, yaml ? cvy_yaml_root(yaml) : NULL, NULL, NULL, options));
done:
    cvy_yaml_destroy(&yaml);
    cvy_free(written);
    return status;
}

static cvy_status open_zoo(const char *text, cvy_model **model_out)
{
    const char *colon = strchr(text, ':');
    const cvy_zoo_entry *entry;
    CVY_TRY(need_entry(text, &entry));
    void *options = cvy_calloc(1, entry->options_bytes);
    if (!options) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = parse_options(entry, colon ? colon + 1 : NULL, options);
    if (status == CVY_OK) {
        status = entry->build(text, options, model_out);
    }
    cvy_free(options);
    return status == CVY_OK ? status : cvy_fail_within(status, "%s", entry->name);
}

static bool is_file(const char *text) { return strchr(text, '/') || ends_in(text, ".yaml") || ends_in(text, ".yml"); }

cvy_status cvy_model_open(const char *text, cvy_model **model_out)
{
    return is_file(text) ? cvy_model_load_yaml(text, model_out) : open_zoo(text, model_out);
}

/* ---- options that a text does not say ---- */

static bool has_option(const cvy_zoo_entry *entry, const char *key, size_t length)
{
    for (const cvy_field *field = entry->fields; field->name; field++) {
        if (strlen(field->name) == length && strncmp(field->name, key, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the zoo knows the option at all: a word that no model takes is a slip. */
static cvy_status check_option(const char *option, size_t key, size_t length)
{
    const cvy_zoo_entry *entry;
    int i = 0;
    while ((entry = cvy_zoo_get(i)) && !has_option(entry, option, key)) {
        i++;
    }
    CVY_REQUIRE(entry && key < length, CVY_ERR_INPUT, "options of models: found '%.*s', expected key=value of an "
                "option of some model of the zoo", (int)(length < CVY_WORD_TEXT ? length : CVY_WORD_TEXT), option);
    return CVY_OK;
}

/* Whether options say a key; values in lists hold no '='. */
static bool says(const char *options, const char *key, size_t length)
{
    for (const char *at = options; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, key, length) == 0 && at[length] == '=') {
            return true;
        }
    }
    return false;
}

cvy_status cvy_model_add_options(const char *text, const char *defaults, char **text_out)
{
    const cvy_zoo_entry *entry = is_file(text) ? NULL : find_entry(text);
    const char *colon = strchr(text, ':');
    bool first = !colon;
    cvy_text named = {0};
    cvy_text_add(&named, "%s", text);
    for (const char *at = defaults; at;) {
        size_t length = strcspn(at, ","), key = strcspn(at, "=,");
        cvy_status status = check_option(at, key, length);
        if (status != CVY_OK) {
            cvy_text_destroy(&named);
            return status;
        }
        if (entry && has_option(entry, at, key) && !says(colon ? colon + 1 : NULL, at, key)) {
            cvy_text_add(&named, "%c%.*s", first ? ':' : ',', (int)length, at);
            first = false;
        }
        at = at[length] ? at + length + 1 : NULL;
    }
    char *taken = cvy_text_take(&named);
    if (!taken) {
        return CVY_ERR_MEMORY;
    }
    *text_out = taken;
    return CVY_OK;
}
