/* A YAML document as a table of keys and values: nested keys are joined by points, long lists are counted. */
#include <stdio.h>

#include "base/memory.h"
#include "report/sections.h"

enum { KEY_TEXT = 200, MOST_DEPTH = 4, MOST_ITEMS = 12 };

static void add_node(cvy_page *page, const char *key, const cvy_yaml_node *node, int depth);

static void add_children(cvy_page *page, const char *key, const cvy_yaml_node *node, int depth)
{
    const bool mapping = cvy_yaml_node_kind(node) == CVY_YAML_MAPPING;
    for (int i = 0; i < cvy_yaml_size(node); i++) {
        char child[KEY_TEXT];
        if (mapping) {
            snprintf(child, sizeof child, "%.150s%s%.40s", key, *key ? "." : "", cvy_yaml_key(node, i));
        } else {
            snprintf(child, sizeof child, "%.150s[%d]", key, i);
        }
        add_node(page, child, cvy_yaml_item(node, i), depth + 1);
    }
}

static bool is_flat(const cvy_yaml_node *node)
{
    bool flat = cvy_yaml_node_kind(node) == CVY_YAML_SEQUENCE && cvy_yaml_size(node) <= MOST_ITEMS;
    for (int i = 0; flat && i < cvy_yaml_size(node); i++) {
        flat = cvy_yaml_node_kind(cvy_yaml_item(node, i)) == CVY_YAML_SCALAR;
    }
    return flat;
}

static void add_list(cvy_page *page, const char *key, const cvy_yaml_node *node)
{
    cvy_text list = {0};
    for (int i = 0; i < cvy_yaml_size(node); i++) {
        cvy_text_add(&list, "%s%s", i ? ", " : "", cvy_yaml_text(cvy_yaml_item(node, i)));
    }
    cvy_page_cell(page, "%s", key);
    cvy_page_cell(page, "%s", list.data ? list.data : "-");
    cvy_text_destroy(&list);
}

static void add_node(cvy_page *page, const char *key, const cvy_yaml_node *node, int depth)
{
    if (cvy_yaml_node_kind(node) == CVY_YAML_SCALAR) {
        cvy_page_cell(page, "%s", key);
        cvy_page_cell(page, "%s", cvy_yaml_text(node));
    } else if (is_flat(node)) {
        add_list(page, key, node);
    } else if (depth >= MOST_DEPTH || cvy_yaml_size(node) > MOST_ITEMS) {
        cvy_page_cell(page, "%s", key);
        cvy_page_cell(page, "%d entries", cvy_yaml_size(node));
    } else {
        add_children(page, key, node, depth);
    }
}

void cvy_report_yaml(cvy_page *page, const cvy_yaml_node *root, const char *folded)
{
    static const cvy_page_column column[] = {{.name = "key"}, {.name = "value", .words = true}};
    cvy_page_begin_table(page, column, 2, folded);
    add_children(page, "", root, 0);
    cvy_page_end_table(page);
}

cvy_status cvy_report_machine(cvy_page *page, const cvy_machine *machine)
{
    cvy_text text = {0};
    cvy_yaml *yaml = NULL;
    cvy_machine_print(machine, &text);
    size_t bytes = text.length;
    char *words = cvy_text_take(&text);
    if (!words) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = cvy_yaml_parse(machine->name, words, bytes, &yaml);
    if (status == CVY_OK) {
        cvy_report_yaml(page, cvy_yaml_root(yaml), "The machine");
    }
    cvy_yaml_destroy(&yaml);
    cvy_free(words);
    return status;
}
