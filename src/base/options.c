/*
 * Options from four places: defaults, YAML files, CONVOY_* variables, the command line; each is laid over those before.
 * argp runs twice over the line: once to find --help and --config, once, after files and variables, for the values. It
 * is kept silent: what is wrong is worded here, in one line.
 */
#include "base/options.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/option_name.h"
#include "base/option_value.h"
#include "base/text.h"
#include "base/yaml.h"

enum { KEY_HELP = 'h', KEY_CONFIG = 300, KEY_FIRST = 301, MAX_FILES = 8, WHERE_TEXT = 512 };
/* One parse under way. */
typedef struct parse {
    const cvy_command_options *command;
    const char *program;
    void *values;
    cvy_parsed_options *parsed;
    cvy_option_names names;
    struct argp_option *argp_option;
    cvy_yaml *file[MAX_FILES]; /* kept until the texts are copied out of them */
    int files;
    char **joined;             /* by option: its texts of the line, where several may be */
    bool help;                 /* was asked for */
    bool apply;                /* the second run */
    cvy_status status;
} parse;

/* ---- files and variables ---- */

/* A file may not name another file, nor ask for help. */
static cvy_status apply_file_entry(parse *p, const cvy_yaml_node *root, int i)
{
    const char *key = cvy_yaml_key(root, i);
    const cvy_yaml_node *node = cvy_yaml_item(root, i);
    int owner = cvy_option_names_find(&p->names, key, strlen(key));
    if (owner == CVY_OWNER_CONFIG || owner == CVY_OWNER_HELP) {
        return cvy_yaml_fail(node, "'%s' is for the command line, not for a file", key);
    }
    if (owner < 0) {
        const char *nearest = cvy_option_names_nearest(&p->names, key, 0);
        return cvy_yaml_fail(node, "no option '%.60s'%s%s%s", key, nearest ? "; did you mean '" : "",
                             nearest ? nearest : "", nearest ? "'?" : "");
    }
    if (!cvy_yaml_text(node)) {
        return cvy_yaml_fail(node, "%s: expected one value, found a list or a mapping", key);
    }
    char where[WHERE_TEXT];
    snprintf(where, sizeof where, "%s:%d: %s", cvy_yaml_file(node), cvy_yaml_line(node), key);
    return cvy_option_set(&p->command->option[owner], where, cvy_yaml_text(node), p->values);
}

static cvy_status apply_file(parse *p, const char *path)
{
    CVY_REQUIRE(p->files < MAX_FILES, CVY_ERR_INPUT, "--config: more than %d files", MAX_FILES);
    cvy_yaml *yaml;
    CVY_TRY(cvy_yaml_load(path, &yaml));
    p->file[p->files++] = yaml;
    const cvy_yaml_node *root = cvy_yaml_root(yaml);
    if (cvy_yaml_node_kind(root) != CVY_YAML_MAPPING) {
        return cvy_yaml_fail(root, "expected lines of 'option: value'");
    }
    for (int i = 0; i < cvy_yaml_size(root); i++) {
        CVY_TRY(apply_file_entry(p, root, i));
    }
    return CVY_OK;
}

/* An empty variable is one that is not set. The main name is looked at last, and so wins over its aliases. */
static cvy_status apply_environment(parse *p)
{
    char variable[CVY_OPTION_NAME_TEXT];
    for (int i = p->names.count - 1; i >= 0; i--) {
        int owner = p->names.owner[i];
        const char *text = getenv(cvy_option_print_variable(p->names.name[i], variable, sizeof variable));
        if (text && *text && owner >= 0) {
            CVY_TRY(cvy_option_set(&p->command->option[owner], variable, text, p->values));
        }
    }
    return CVY_OK;
}

/* ---- the command line ---- */

static cvy_status fail_ambiguous(const parse *p, const char *word, size_t length)
{
    cvy_text list = {0};
    for (int i = 0; i < p->names.count; i++) {
        if (strncmp(p->names.name[i], word + 2, length) == 0) {
            cvy_text_add(&list, "%s--%s", list.length ? ", " : "", p->names.name[i]);
        }
    }
    cvy_status status = cvy_fail(CVY_ERR_INPUT, "option '%.60s' may be %s", word, list.data ? list.data : "");
    cvy_text_destroy(&list);
    return status;
}

/* What is wrong with "--word", which argp has refused; CVY_OK where it must be another word. */
static cvy_status word_long_option(const parse *p, const char *word)
{
    char usage[CVY_OPTION_NAME_TEXT];
    size_t length = strcspn(word + 2, "=");
    int owner = cvy_option_names_find(&p->names, word + 2, length);
    int matches = 0;
    for (int i = 0; i < p->names.count && owner == CVY_OWNER_NONE; i++) {
        matches += strncmp(p->names.name[i], word + 2, length) == 0;
    }
    if (owner == CVY_OWNER_NONE && matches > 1) {
        return fail_ambiguous(p, word, length);
    }
    if (owner == CVY_OWNER_NONE && matches == 0) {
        char name[CVY_OPTION_NAME_TEXT];
        snprintf(name, sizeof name, "%.*s", (int)length, word + 2);
        const char *nearest = cvy_nearest(name, p->names.name);
        return nearest ? cvy_fail(CVY_ERR_INPUT, "no option '--%s'; did you mean '--%s'?", name, nearest)
                       : cvy_fail(CVY_ERR_INPUT, "no option '--%s'; see %s --help", name, p->program);
    }
    if (owner == CVY_OWNER_HELP) {
        return cvy_fail(CVY_ERR_INPUT, "option '%.60s' takes no value", word);
    }
    if (owner >= 0 && p->command->option[owner].type == CVY_OPTION_FLAG) {
        return CVY_OK;
    }
    return owner >= 0 ? cvy_fail(CVY_ERR_INPUT, "option '%.60s' needs a value: %s", word,
                                 cvy_option_print_usage(&p->command->option[owner], usage, sizeof usage))
                      : cvy_fail(CVY_ERR_INPUT, "option '%.60s' needs a value", word);
}

/* The same of "-xyz": the first letter that is nobody's, or a last one that lacks its value. */
static cvy_status word_short_options(const parse *p, const char *word)
{
    for (const char *letter = word + 1; *letter; letter++) {
        const cvy_option *option = p->command->option;
        while (option->name && (option->letter != *letter || option->type == CVY_OPTION_HEADING)) {
            option++;
        }
        if (!option->name && *letter != KEY_HELP) {
            return cvy_fail(CVY_ERR_INPUT, "no option '-%c'; see %s --help", *letter, p->program);
        }
        if (option->name && option->type != CVY_OPTION_FLAG) {
            char usage[CVY_OPTION_NAME_TEXT];
            return letter[1] ? CVY_OK
                             : cvy_fail(CVY_ERR_INPUT, "option '-%c' needs a value: %s", *letter,
                                        cvy_option_print_usage(option, usage, sizeof usage));
        }
    }
    return CVY_OK;
}

/* getopt has gone past a long option that it refuses, but not always past a group of letters. */
static cvy_status word_refused(const parse *p, const struct argp_state *state)
{
    for (int i = state->next - 1; i <= state->next; i++) {
        const char *word = i >= 1 && i < state->argc ? state->argv[i] : "";
        cvy_status status = strncmp(word, "--", 2) == 0 ? word_long_option(p, word)
                            : word[0] == '-'            ? word_short_options(p, word)
                                                        : CVY_OK;
        if (status != CVY_OK) {
            return status;
        }
    }
    return cvy_fail(CVY_ERR_INPUT, "the options make no sense; see %s --help", p->program);
}

static cvy_status take_operand(parse *p, const char *text)
{
    int most = p->command->max_operands < CVY_MOST_OPERANDS ? p->command->max_operands : CVY_MOST_OPERANDS;
    if (!p->apply) {
        return CVY_OK;
    }
    CVY_REQUIRE(most > 0, CVY_ERR_INPUT, "%s takes options alone, found '%.60s'", p->program, text);
    CVY_REQUIRE(p->parsed->operands < most, CVY_ERR_INPUT, "%s takes %s, found one more: '%.60s'", p->program,
                p->command->operands, text);
    p->parsed->operand[p->parsed->operands++] = text;
    return CVY_OK;
}

static int count_options(const cvy_option *option)
{
    int count = 0;
    while (option[count].name) {
        count++;
    }
    return count;
}

/* A text behind those of the same option that stand on the line before it. */
static cvy_status join_text(parse *p, const cvy_option *option, const char *text)
{
    char **before = &p->joined[option - p->command->option];
    cvy_text all = {0};
    cvy_text_add(&all, "%s%s%s", *before ? *before : "", *before ? option->joined_by : "", text);
    cvy_free(*before);
    *before = cvy_text_take(&all);
    if (!*before) {
        return CVY_ERR_MEMORY;
    }
    cvy_option_set_text(option, p->values, *before);
    return CVY_OK;
}

static cvy_status take_option(parse *p, int key, const char *text)
{
    char where[CVY_OPTION_NAME_TEXT];
    for (const cvy_option *option = p->command->option; p->apply && option->name; option++) {
        if (key == KEY_FIRST + (int)(option - p->command->option) || (option->letter && key == option->letter)) {
            snprintf(where, sizeof where, "--%s", option->name);
            CVY_TRY(cvy_option_set(option, where, text, p->values));
            return option->joined_by ? join_text(p, option, text) : CVY_OK;
        }
    }
    return CVY_OK;
}

/* argp's callback; a failure is kept in the parse, since argp knows errno values alone. */
static error_t take(int key, char *text, struct argp_state *state)
{
    parse *p = state->input;
    switch (key) {
    case ARGP_KEY_ERROR:
        if (p->status == CVY_OK) {
            p->status = word_refused(p, state);
        }
        return 0;
    case ARGP_KEY_ARG: p->status = take_operand(p, text); break;
    case ARGP_KEY_INIT:
    case ARGP_KEY_ARGS:
    case ARGP_KEY_NO_ARGS:
    case ARGP_KEY_END:
    case ARGP_KEY_SUCCESS:
    case ARGP_KEY_FINI: return ARGP_ERR_UNKNOWN;
    case KEY_HELP: p->help = true; break;
    case KEY_CONFIG: p->status = p->apply || p->help ? CVY_OK : apply_file(p, text); break;
    default: p->status = take_option(p, key, text); break;
    }
    return p->status == CVY_OK ? 0 : EINVAL;
}

/* argp permutes what it reads, so it gets a copy of the line. */
static cvy_status run_argp(parse *p, int argc, char **argv)
{
    char **line = cvy_calloc((size_t)argc + 1, sizeof *line);
    if (!line) {
        return CVY_ERR_MEMORY;
    }
    memcpy(line, argv, (size_t)argc * sizeof *line);
    struct argp argp = {.options = p->argp_option, .parser = take};
    error_t error = argp_parse(&argp, argc, line, ARGP_SILENT, NULL, p);
    cvy_free(line);
    CVY_TRY(p->status);
    CVY_REQUIRE(error == 0, CVY_ERR_INPUT, "the options make no sense: %s", strerror(error));
    return CVY_OK;
}

/* What argp needs to know of the i-th name; aliases follow their main name. */
static struct argp_option describe_name(const parse *p, int i)
{
    int owner = p->names.owner[i];
    const char *name = p->names.name[i];
    if (owner == CVY_OWNER_HELP) {
        return (struct argp_option){.name = name, .key = KEY_HELP};
    }
    if (owner == CVY_OWNER_CONFIG) {
        return (struct argp_option){.name = name, .key = KEY_CONFIG, .arg = "FILE"};
    }
    if (i > 0 && p->names.owner[i - 1] == owner) {
        return (struct argp_option){.name = name, .flags = OPTION_ALIAS};
    }
    const cvy_option *option = &p->command->option[owner];
    bool flag = option->type == CVY_OPTION_FLAG;
    return (struct argp_option){.name = name, .key = option->letter && !flag ? option->letter : KEY_FIRST + owner,
                                .arg = "VALUE", .flags = flag ? OPTION_ARG_OPTIONAL : 0};
}

/* The letters of flags are entries of their own: unlike --quiet=no, -qx is two flags, not one with a value. */
static cvy_status list_argp_options(parse *p)
{
    p->argp_option = cvy_calloc(2 * (size_t)p->names.count + 1, sizeof *p->argp_option);
    if (!p->argp_option) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < p->names.count; i++) {
        p->argp_option[i] = describe_name(p, i);
    }
    int count = p->names.count;
    for (const cvy_option *option = p->command->option; option->name; option++) {
        if (option->type == CVY_OPTION_FLAG && option->letter) {
            p->argp_option[count++].key = option->letter;
        }
    }
    return CVY_OK;
}

/* ---- all of it ---- */

/* Copy all text values into one block, so that files may be closed. */
static cvy_status keep_texts(parse *p)
{
    const cvy_option *option = p->command->option;
    size_t bytes = 1;
    for (const cvy_option *o = option; o->name; o++) {
        const char *text = o->type == CVY_OPTION_TEXT ? cvy_option_get_text(o, p->values) : NULL;
        bytes += text ? strlen(text) + 1 : 0;
    }
    char *to = p->parsed->storage = cvy_calloc(bytes, 1);
    if (!to) {
        return CVY_ERR_MEMORY;
    }
    for (const cvy_option *o = option; o->name; o++) {
        const char *text = o->type == CVY_OPTION_TEXT ? cvy_option_get_text(o, p->values) : NULL;
        if (text) {
            cvy_option_set_text(o, p->values, strcpy(to, text));
            to += strlen(to) + 1;
        }
    }
    return CVY_OK;
}

static cvy_status run_parse(parse *p, int argc, char **argv)
{
    CVY_TRY(cvy_option_names_list(p->command->option, &p->names));
    CVY_TRY(list_argp_options(p));
    for (const cvy_option *option = p->command->option; option->name; option++) {
        if (option->fallback) {
            CVY_TRY(cvy_option_set(option, option->name, option->fallback, p->values));
        }
    }
    const char *file = getenv("CONVOY_CONFIG");
    if (file && *file) {
        CVY_TRY(apply_file(p, file));
    }
    CVY_TRY(run_argp(p, argc, argv));
    if (p->help) {
        p->parsed->help = cvy_options_print_help(p->command, p->program, p->values);
        return p->parsed->help ? CVY_OK : CVY_ERR_MEMORY;
    }
    CVY_TRY(apply_environment(p));
    p->joined = cvy_calloc((size_t)count_options(p->command->option) + 1, sizeof *p->joined);
    if (!p->joined) {
        return CVY_ERR_MEMORY;
    }
    p->apply = true;
    CVY_TRY(run_argp(p, argc, argv));
    CVY_REQUIRE(p->parsed->operands >= p->command->min_operands, CVY_ERR_INPUT, "%s needs %s; see %s --help",
                p->program, p->command->operands, p->program);
    return keep_texts(p);
}

cvy_status cvy_options_parse(const cvy_command_options *command, int argc, char **argv, void *values,
                             cvy_parsed_options *parsed_out)
{
    CVY_REQUIRE(argc >= 1, CVY_ERR_ARG, "a command line begins with the program's name");
    *parsed_out = (cvy_parsed_options){0};
    parse p = {.command = command, .program = argv[0], .values = values, .parsed = parsed_out};
    cvy_status status = run_parse(&p, argc, argv);
    for (int i = 0; i < p.files; i++) {
        cvy_yaml_destroy(&p.file[i]);
    }
    for (int i = 0; p.joined && i < count_options(command->option); i++) {
        cvy_free(p.joined[i]);
    }
    cvy_free(p.joined);
    cvy_free(p.argp_option);
    cvy_option_names_clear(&p.names);
    return status;
}

void cvy_parsed_options_clear(cvy_parsed_options *parsed)
{
    cvy_free(parsed->storage);
    cvy_free(parsed->help);
    *parsed = (cvy_parsed_options){0};
}
