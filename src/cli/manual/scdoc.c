/*
 * Marks are escaped wherever they stand. Texts come from the tables, so they are words within one line; what scdoc sees
 * at the start of a line alone (#, |, -) is none of theirs.
 */
#include "cli/manual/scdoc.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Bounds from these on say "any number" to people. */
static const double LEAST = -1e6, MOST = 1e6;

static void add_escaped(cvy_text *text, const char *words, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        cvy_text_add(text, "%s%c", strchr("\\*_`+", words[i]) ? "\\" : "", words[i]);
    }
}

void scdoc_add_plain(cvy_text *text, const char *words) { add_escaped(text, words, strlen(words)); }

/* Length of "--name" at the start of @p words; 0 where there is none. */
static size_t measure_option(const char *words)
{
    size_t length = strncmp(words, "--", 2) == 0 ? strspn(words + 2, "abcdefghijklmnopqrstuvwxyz0123456789-") : 0;
    return length ? length + 2 : 0;
}

/* Whether a sentence begins with a word, unlike "x above 0" and "train.npz": formulas and files stay as they are. */
static bool begins_with_word(const char *words)
{
    size_t length = strspn(words, "abcdefghijklmnopqrstuvwxyz");
    return (length > 1 || (length == 1 && words[0] == 'a')) && strchr(" ,;:", words[length]);
}

void scdoc_add_sentence(cvy_text *text, const char *words)
{
    size_t length = strlen(words);
    for (size_t at = 0; at < length;) {
        size_t option = measure_option(words + at);
        if (option) {
            cvy_text_add(text, "*%.*s*", (int)option, words + at);
            at += option;
        } else if (at++ == 0 && begins_with_word(words)) {
            cvy_text_add(text, "%c", toupper((unsigned char)words[0]));
        } else {
            add_escaped(text, words + at - 1, 1);
        }
    }
    cvy_text_add(text, ".");
}

/* A run of letters, digits and dashes is a word; whatever stands between stays plain. */
void scdoc_add_form(cvy_text *text, const char *form, size_t length)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";
    for (size_t at = 0; at < length;) {
        size_t word = strspn(form + at, letters);
        word = word < length - at ? word : length - at;
        if (word) {
            const char *mark = isupper((unsigned char)form[at]) ? "_" : "*";
            cvy_text_add(text, "%s", mark);
            add_escaped(text, form + at, word);
            cvy_text_add(text, "%s", mark);
        } else {
            add_escaped(text, form + at, word = 1);
        }
        at += word;
    }
}

void scdoc_add_choices(cvy_text *text, const char *const *choices)
{
    for (int i = 0; choices[i]; i++) {
        cvy_text_add(text, "%s*", i == 0 ? "" : choices[i + 1] ? ", " : " or ");
        scdoc_add_plain(text, choices[i]);
        cvy_text_add(text, "*");
    }
}

void scdoc_add_range(cvy_text *text, double minimum, double maximum)
{
    bool below = minimum > LEAST && (minimum != 0 || maximum < MOST); /* whoever counts starts at 0 */
    if (below && maximum < MOST) {
        cvy_text_add(text, " from %.15g to %.15g", minimum, maximum);
    } else if (below) {
        cvy_text_add(text, " of at least %.15g", minimum);
    } else if (maximum < MOST) {
        cvy_text_add(text, " of at most %.15g", maximum);
    }
}
