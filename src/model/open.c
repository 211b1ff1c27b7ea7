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

static cvy_status find_entry(const char *text, size_t length, const cvy_zoo_entry **entry_out)
{
    for (int i = 0; (*entry_out = cvy_zoo_get(i)); i++) {
        if (strlen((*entry_out)->name) == length && strncmp((*entry_out)->name, text, length) == 0) {
            return CVY_OK;
        }
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
    CVY_TRY(find_entry(text, colon ? (size_t)(colon - text) : strlen(text), &entry));
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

cvy_status cvy_model_open(const char *text, cvy_model **model_out)
{
    bool file = strchr(text, '/') || ends_in(text, ".yaml") || ends_in(text, ".yml");
    return file ? cvy_model_load_yaml(text, model_out) : open_zoo(text, model_out);
}
