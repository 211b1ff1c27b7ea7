/*
 * YAML as a tree of nodes with line numbers, over libyaml. Input is hostile: anchors, aliases and tags are refused,
 * depth, size and count of nodes are limited, keys are unique. It is in UTF-8.
 */
#ifndef CVY_BASE_YAML_H
#define CVY_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/quantity.h"

typedef enum cvy_yaml_kind { CVY_YAML_SCALAR, CVY_YAML_SEQUENCE, CVY_YAML_MAPPING } cvy_yaml_kind;

typedef struct cvy_yaml cvy_yaml;
typedef struct cvy_yaml_node cvy_yaml_node;

enum { CVY_YAML_MAX_BYTES = 16 << 20, CVY_YAML_MAX_DEPTH = 32, CVY_YAML_MAX_NODES = 1000000 };

/** Read a file. @retval CVY_ERR_INPUT "FILE:LINE: cause"; the caller releases with cvy_yaml_destroy() */
cvy_status cvy_yaml_load(const char *path, cvy_yaml **yaml_out);

/** Read text; @p name stands for the file in messages, which have no "FILE:LINE: " where it is NULL. */
cvy_status cvy_yaml_parse(const char *name, const char *text, size_t bytes, cvy_yaml **yaml_out);

void cvy_yaml_destroy(cvy_yaml **yaml);

/** The top node. Cannot fail. */
const cvy_yaml_node *cvy_yaml_root(const cvy_yaml *yaml);

cvy_yaml_kind cvy_yaml_node_kind(const cvy_yaml_node *node);

/** Line of a node, or of its key where it has one; 1 is the first. */
int cvy_yaml_line(const cvy_yaml_node *node);

/** Name of the file that a node is from; NULL where there is none. */
const char *cvy_yaml_file(const cvy_yaml_node *node);

/** Entries of a sequence or mapping; 0 for scalars. */
int cvy_yaml_size(const cvy_yaml_node *node);

/** i-th entry: the item of a sequence, the value of a mapping. */
const cvy_yaml_node *cvy_yaml_item(const cvy_yaml_node *node, int i);

/** i-th key of a mapping. */
const char *cvy_yaml_key(const cvy_yaml_node *node, int i);

/** Value of a key; NULL if absent. */
const cvy_yaml_node *cvy_yaml_find(const cvy_yaml_node *mapping, const char *key);

/** Text of a scalar; NULL for other nodes. */
const char *cvy_yaml_text(const cvy_yaml_node *node);

/** Read numbers; bounds inclusive. @retval CVY_ERR_INPUT "FILE:LINE: WHAT: found, expected" */
cvy_status cvy_yaml_get_int(const cvy_yaml_node *node, const char *what, int64_t minimum, int64_t maximum,
                            int64_t *value_out);
cvy_status cvy_yaml_get_real(const cvy_yaml_node *node, const char *what, double minimum, double maximum,
                             double *value_out);
/** Numbers that a node holds: entries of a list, words of a text with blanks between them; 0 for mappings. */
int cvy_yaml_count_reals(const cvy_yaml_node *node);

/** Read that many numbers, of a list or of a text, where many are read sooner; a text with "|" has a line for each. */
cvy_status cvy_yaml_get_reals(const cvy_yaml_node *node, const char *what, int count, double minimum, double maximum,
                              double *value_out);

/** Read a number with its unit; bounds inclusive, in the base unit. @retval CVY_ERR_INPUT as above */
cvy_status cvy_yaml_get_quantity(const cvy_yaml_node *node, const char *what, cvy_quantity kind, double minimum,
                                 double maximum, double *value_out);
cvy_status cvy_yaml_get_bool(const cvy_yaml_node *node, const char *what, bool *value_out);

/** Word a failure at a node: "FILE:LINE: …". Returns CVY_ERR_INPUT. */
cvy_status cvy_yaml_fail(const cvy_yaml_node *node, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** As cvy_yaml_fail(), at the line of @p at within the node's text where its lines are known, those of "|". */
cvy_status cvy_yaml_fail_at(const cvy_yaml_node *node, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Fail unless every key of a mapping is in @p keys (NULL-terminated); names the nearest match. */
cvy_status cvy_yaml_check_keys(const cvy_yaml_node *mapping, const char *const *keys);

#endif
