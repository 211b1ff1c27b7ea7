/* Options: who wins, what is refused and in which words, for a command made up here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/options.h"

typedef enum colour { RED, GREEN, BLUE } colour;

typedef struct values {
    int64_t batch, epochs;
    double rate;
    const char *data, *note;
    colour colour;
    bool quiet, loud;
} values;

static const char *const colours[] = {"red", "green", "blue", NULL};

static const cvy_option options[] = {
    {.name = "What", .type = CVY_OPTION_HEADING},
    {.name = "data", .letter = 'd', .type = CVY_OPTION_TEXT, .offset = offsetof(values, data), .argument = "FOLDER",
     .help = "Where the samples are"},
    {.name = "note", .type = CVY_OPTION_TEXT, .offset = offsetof(values, note), .fallback = "none",
     .help = "A remark", .joined_by = "; "},
    {.name = "How", .type = CVY_OPTION_HEADING},
    {.name = "batch", .letter = 'b', .type = CVY_OPTION_COUNT, .offset = offsetof(values, batch), .minimum = 1,
     .maximum = 4096, .argument = "N", .help = "Samples an iteration", .aliases = "batch-size global-batch"},
    {.name = "epochs", .type = CVY_OPTION_INT, .offset = offsetof(values, epochs), .minimum = 1, .maximum = 1e18,
     .argument = "N", .help = "Times through the data"},
    {.name = "learning-rate", .type = CVY_OPTION_REAL, .offset = offsetof(values, rate), .minimum = 0, .maximum = 10,
     .argument = "X", .help = "Step size", .aliases = "lr"},
    {.name = "colour", .type = CVY_OPTION_CHOICE, .offset = offsetof(values, colour), .choices = colours,
     .help = "Which one"},
    {.name = "quiet", .letter = 'q', .type = CVY_OPTION_FLAG, .offset = offsetof(values, quiet), .help = "Say less"},
    {.name = "loud", .letter = 'l', .type = CVY_OPTION_FLAG, .offset = offsetof(values, loud), .help = "Say more"},
    {.name = NULL},
};

static const cvy_command_options command = {.command = "paint", .operands = "WALL", .min_operands = 1,
                                            .max_operands = 2, .summary = "Paint walls", .option = options};

static const values defaults = {.batch = 64, .epochs = 1, .rate = 0.01, .colour = GREEN};

enum { MAX_WORDS = 16 };

/* Parse a line given as one string, split at spaces. */
static cvy_status parse(const char *line, values *to, cvy_parsed_options *parsed)
{
    static char copy[512];
    char *word[MAX_WORDS] = {copy}, *rest = copy;
    int count = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *next; (next = strsep(&rest, " ")); ) {
        assert_true(count < MAX_WORDS);
        word[count++] = next;
    }
    *to = defaults;
    return cvy_options_parse(&command, count, word, to, parsed);
}

static void expect_message(const char *line, const char *words)
{
    values v;
    cvy_parsed_options parsed;
    assert_int_equal(parse(line, &v, &parsed), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), words);
    cvy_parsed_options_clear(&parsed);
}

static char folder[] = "/tmp/convoy-options-XXXXXX";
static char file[64];

static void write_file(const char *words)
{
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    assert_true(fputs(words, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static void test_struct_keeps_its_defaults(void **state)
{
    (void)state;
    values v;
    cvy_parsed_options parsed;
    assert_int_equal(parse("paint wall", &v, &parsed), CVY_OK);
    assert_int_equal(v.batch, 64);
    assert_true(v.rate == 0.01);
    assert_int_equal(v.colour, GREEN);
    assert_null(v.data);
    assert_string_equal(v.note, "none");
    assert_int_equal(parsed.operands, 1);
    assert_string_equal(parsed.operand[0], "wall");
    cvy_parsed_options_clear(&parsed);
}

static void test_every_type_is_read(void **state)
{
    (void)state;
    values v;
    cvy_parsed_options parsed;
    const char *line = "paint --batch=8 wall --epochs 3 --learning-rate 2.5e-1 -d here --colour blue -ql --note x:y "
                       "other";
    assert_int_equal(parse(line, &v, &parsed), CVY_OK);
    assert_int_equal(v.batch, 8);
    assert_int_equal(v.epochs, 3);
    assert_true(v.rate == 0.25);
    assert_string_equal(v.data, "here");
    assert_string_equal(v.note, "x:y");
    assert_int_equal(v.colour, BLUE);
    assert_true(v.quiet && v.loud);
    assert_int_equal(parsed.operands, 2); /* operands may stand between options */
    assert_string_equal(parsed.operand[1], "other");
    cvy_parsed_options_clear(&parsed);
}

static void test_aliases_and_per_rank_counts(void **state)
{
    (void)state;
    values v;
    cvy_parsed_options parsed;
    assert_int_equal(parse("paint w --batch-size 32/rank --lr 0.5", &v, &parsed), CVY_OK);
    assert_int_equal(v.batch, -32); /* of each rank, however many there are */
    assert_true(v.rate == 0.5);
    cvy_parsed_options_clear(&parsed);
    assert_int_equal(parse("paint w --global-batch 16 --batch 24", &v, &parsed), CVY_OK);
    assert_int_equal(v.batch, 24); /* the later one on the line */
    cvy_parsed_options_clear(&parsed);
}

/* The file sets four, the environment three of them anew, the line two of these: default < file < variable < line. */
static void test_line_wins_over_variable_over_file(void **state)
{
    (void)state;
    char line[128];
    values v;
    cvy_parsed_options parsed;
    write_file("batch: 2\nepochs: 2\nlearning-rate: 2\ndata: \"from file\"\nquiet: yes\nloud: yes\n");
    setenv("CONVOY_EPOCHS", "3", 1);
    setenv("CONVOY_LR", "3", 1);
    setenv("CONVOY_COLOUR", "blue", 1);
    setenv("CONVOY_BATCH_SIZE", "3/rank", 1);
    snprintf(line, sizeof line, "paint w --learning-rate 4 --config %s --colour red --loud=no", file);
    assert_int_equal(parse(line, &v, &parsed), CVY_OK);
    assert_string_equal(v.data, "from file"); /* the file is closed: the text has been copied */
    assert_int_equal(v.batch, -3);
    assert_int_equal(v.epochs, 3);
    assert_true(v.rate == 4);
    assert_int_equal(v.colour, RED);
    assert_true(v.quiet);
    assert_false(v.loud);
    cvy_parsed_options_clear(&parsed);

    setenv("CONVOY_CONFIG", file, 1);
    assert_int_equal(parse("paint w", &v, &parsed), CVY_OK);
    assert_string_equal(v.data, "from file");
    cvy_parsed_options_clear(&parsed);
}

static void test_later_file_wins(void **state)
{
    (void)state;
    char second[80], line[192];
    values v;
    cvy_parsed_options parsed;
    write_file("batch: 2\nepochs: 2\n");
    snprintf(second, sizeof second, "%s.2", file);
    assert_int_equal(rename(file, second), 0);
    write_file("batch: 5\n");
    snprintf(line, sizeof line, "paint w --config %s --config %s", second, file);
    assert_int_equal(parse(line, &v, &parsed), CVY_OK);
    assert_int_equal(v.batch, 5);
    assert_int_equal(v.epochs, 2);
    cvy_parsed_options_clear(&parsed);
    assert_int_equal(unlink(second), 0);
}

/* Those of a line stand together; they replace what a variable says, or the default. */
static void test_texts_of_a_line_are_joined(void **state)
{
    (void)state;
    values v = defaults;
    cvy_parsed_options parsed;
    setenv("CONVOY_NOTE", "matt", 1);
    assert_int_equal(parse("paint wall --note=dry --batch 8 --note wet --data here --data there", &v, &parsed), CVY_OK);
    assert_string_equal(v.note, "dry; wet");
    assert_string_equal(v.data, "there");
    cvy_parsed_options_clear(&parsed);
    v = defaults;
    assert_int_equal(parse("paint wall", &v, &parsed), CVY_OK);
    assert_string_equal(v.note, "matt");
    unsetenv("CONVOY_NOTE");
    cvy_parsed_options_clear(&parsed);
}

static void test_unknown_options_name_the_nearest(void **state)
{
    (void)state;
    expect_message("paint w --bacth 3", "no option '--bacth'; did you mean '--batch'?");
    expect_message("paint --bacth=3 w", "no option '--bacth'; did you mean '--batch'?");
    expect_message("paint w --xyzzy", "no option '--xyzzy'; see paint --help");
    expect_message("paint w -x", "no option '-x'; see paint --help");
    expect_message("paint w -qx", "no option '-x'; see paint --help");
    expect_message("paint w --quiet -lx", "no option '-x'; see paint --help");
}

static void test_unique_beginning_is_enough(void **state)
{
    (void)state;
    values v;
    cvy_parsed_options parsed;
    assert_int_equal(parse("paint w --ep 7 --bat 9", &v, &parsed), CVY_OK); /* --batch and its alias are one option */
    assert_int_equal(v.epochs, 7);
    assert_int_equal(v.batch, 9);
    cvy_parsed_options_clear(&parsed);
    expect_message("paint w --l 3", "option '--l' may be --learning-rate, --lr, --loud");
}

static void test_values_are_checked(void **state)
{
    (void)state;
    expect_message("paint w --batch 0", "--batch: expected a count (N or N/rank) from 1 to 4096, found '0'");
    expect_message("paint w --batch 4097", "--batch: expected a count (N or N/rank) from 1 to 4096, found '4097'");
    expect_message("paint w --batch 64x", "--batch: expected a count (N or N/rank) from 1 to 4096, found '64x'");
    expect_message("paint w --batch 8/ranks",
                   "--batch: expected a count (N or N/rank) from 1 to 4096, found '8/ranks'");
    expect_message("paint w --epochs 1.5", "--epochs: expected a whole number of at least 1, found '1.5'");
    expect_message("paint w --epochs 99999999999999999999",
                   "--epochs: expected a whole number from 1 to 1e+18, found '99999999999999999999'");
    expect_message("paint w --epochs 4/rank", "--epochs: expected a whole number of at least 1, found '4/rank'");
    expect_message("paint w --lr nan", "--learning-rate: expected a number from 0 to 10, found 'nan'");
    expect_message("paint w --lr inf", "--learning-rate: expected a number from 0 to 10, found 'inf'");
    expect_message("paint w --lr -1", "--learning-rate: expected a number from 0 to 10, found '-1'");
    expect_message("paint w --lr 10.5", "--learning-rate: expected a number from 0 to 10, found '10.5'");
    expect_message("paint w --colour bleu",
                   "--colour: expected red, green or blue, found 'bleu'; did you mean 'blue'?");
    expect_message("paint w --quiet=perhaps", "--quiet: expected yes or no, found 'perhaps'");
    expect_message("paint w --data=", "--data: expected FOLDER, found nothing");
}

static void test_missing_values_and_operands(void **state)
{
    (void)state;
    expect_message("paint w --batch", "option '--batch' needs a value: --batch N");
    expect_message("paint w -b", "option '-b' needs a value: --batch N");
    expect_message("paint w --config", "option '--config' needs a value");
    expect_message("paint w --help=me", "option '--help=me' takes no value");
    expect_message("paint --batch 3", "paint needs WALL; see paint --help");
    expect_message("paint a b c", "paint takes WALL, found one more: 'c'");
}

static void test_bad_variables_are_named(void **state)
{
    (void)state;
    setenv("CONVOY_BATCH", "many", 1);
    expect_message("paint w", "CONVOY_BATCH: expected a count (N or N/rank) from 1 to 4096, found 'many'");
    setenv("CONVOY_BATCH", "", 1); /* empty is not set */
    values v;
    cvy_parsed_options parsed;
    assert_int_equal(parse("paint w", &v, &parsed), CVY_OK);
    assert_int_equal(v.batch, 64);
    cvy_parsed_options_clear(&parsed);
}

static void test_misspelt_variables_are_refused(void **state)
{
    (void)state;
    setenv("CONVOY_LEARNING_RATE", "1", 1);
    setenv("CONVOY_BATCH_SIZE", "1", 1);
    setenv("CONVOY_CONFIG", "a.yaml", 1);
    assert_int_equal(cvy_options_check_environment(options), CVY_OK);
    setenv("CONVOY_EPOHCS", "1", 1);
    assert_int_equal(cvy_options_check_environment(options), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(),
                        "environment variable CONVOY_EPOHCS belongs to no option; did you mean CONVOY_EPOCHS");
    unsetenv("CONVOY_EPOHCS");
    setenv("CONVOY_HELP", "1", 1);
    assert_int_equal(cvy_options_check_environment(options), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "environment variable CONVOY_HELP belongs to no option: help is for the "
                                             "command line, --help");
    unsetenv("CONVOY_HELP");
    setenv("CONVOY_HEPL", "1", 1); /* help is nearest, but no variable */
    assert_int_equal(cvy_options_check_environment(options), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "environment variable CONVOY_HEPL belongs to no option");
    unsetenv("CONVOY_HEPL");
}

static void test_files_name_their_line(void **state)
{
    (void)state;
    char line[128], words[256];
    snprintf(line, sizeof line, "paint w --config %s", file);
    write_file("epochs: 2\nbacth: 2\n");
    snprintf(words, sizeof words, "%s:2: no option 'bacth'; did you mean 'batch'?", file);
    expect_message(line, words);
    write_file("epochs: 2\n\nbatch: none\n");
    snprintf(words, sizeof words, "%s:3: batch: expected a count (N or N/rank) from 1 to 4096, found 'none'", file);
    expect_message(line, words);
    write_file("data: [1, 2]\n");
    snprintf(words, sizeof words, "%s:1: data: expected one value, found a list or a mapping", file);
    expect_message(line, words);
    write_file("epochs: 2\nhelp: yes\n");
    snprintf(words, sizeof words, "%s:2: 'help' is for the command line, not for a file", file);
    expect_message(line, words);
    write_file("config: other.yaml\n"); /* a file may not name a file */
    values v;
    cvy_parsed_options parsed;
    assert_int_equal(parse(line, &v, &parsed), CVY_ERR_INPUT);
    cvy_parsed_options_clear(&parsed);
    write_file("- batch\n");
    snprintf(words, sizeof words, "%s:1: expected lines of 'option: value'", file);
    expect_message(line, words);
}

/* What is printed reads back as the same values, awkward text and numbers included. */
static void test_printed_values_read_back(void **state)
{
    (void)state;
    char line[128];
    values back, v = {.batch = 7, .epochs = 1234567890123, .rate = 0.1, .data = "a \"b\": \\c\n#d", .note = "null",
                      .colour = BLUE, .quiet = true};
    cvy_parsed_options parsed;
    char *yaml = cvy_options_print_yaml(&command, &v);
    assert_non_null(yaml);
    write_file(yaml);
    snprintf(line, sizeof line, "paint w --config %s", file);
    assert_int_equal(parse(line, &back, &parsed), CVY_OK);
    assert_int_equal(back.batch, 7);
    assert_int_equal(back.epochs, 1234567890123);
    assert_true(back.rate == 0.1);
    assert_string_equal(back.data, v.data);
    assert_string_equal(back.note, "null");
    assert_int_equal(back.colour, BLUE);
    assert_true(back.quiet);
    assert_false(back.loud);
    cvy_parsed_options_clear(&parsed);
    cvy_free(yaml);
}

/* Help holds every option with its aliases, choices and default, in the order of the table, within 100 columns. */
static void test_help_comes_from_the_table(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "usage: paint WALL [option ...]\n", "Paint walls.\n", "\nWhat:\n", "\n  -d, --data FOLDER", "(default none)",
        "\nHow:\n", "\n  -b, --batch N ", "(default 64; also\n", "--batch-size, --global-batch)", "(default 1)",
        "(default 0.01; also --lr)", "Which one: red, green, blue (default green)", "\n  -q, --quiet ", "--config FILE",
        NULL};
    values v;
    cvy_parsed_options parsed;
    assert_int_equal(parse("paint --help", &v, &parsed), CVY_OK); /* though WALL is missing */
    const char *at = parsed.help;
    for (int i = 0; parts[i]; i++) {
        at = strstr(at, parts[i]);
        assert_non_null(at);
    }
    for (const char *line = parsed.help; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        assert_true(strcspn(line, "\n") < 80);
    }
    cvy_parsed_options_clear(&parsed);
}

/* Forms stand one below the other, each as wide as the first: "usage: " has seven letters. */
static void test_help_shows_each_form_of_a_line(void **state)
{
    (void)state;
    static const char expected[] = "usage: paint WALL --colour NAME [option ...]\n"
                                   "       paint --undo [option ...]\n"
                                   "\nPaint walls.\n";
    static char program[] = "paint", help[] = "--help";
    char *line[] = {program, help, NULL};
    cvy_command_options forms = command;
    values v = defaults;
    cvy_parsed_options parsed;
    forms.usage = "WALL --colour NAME\n--undo";
    assert_int_equal(cvy_options_parse(&forms, 2, line, &v, &parsed), CVY_OK);
    assert_int_equal(strncmp(parsed.help, expected, strlen(expected)), 0);
    cvy_parsed_options_clear(&parsed);
}

/* Let every allocation fail in turn: the answer is CVY_ERR_MEMORY until none is left to fail. */
static void test_exhausted_memory_is_told(void **state)
{
    (void)state;
    char line[128];
    values v;
    cvy_parsed_options parsed;
    write_file("data: there\n");
    snprintf(line, sizeof line, "paint w --config %s --batch-size 3", file);
    cvy_status status = CVY_ERR_MEMORY;
    int failures = 0;
    for (; status != CVY_OK && failures < 1000; failures++) {
        cvy_memory_fail_after(failures);
        status = parse(line, &v, &parsed);
        cvy_memory_fail_after(-1);
        assert_true(status == CVY_OK || status == CVY_ERR_MEMORY);
        cvy_parsed_options_clear(&parsed);
    }
    assert_true(failures > 6 && failures < 1000);
}

static int clear_environment(void **state)
{
    (void)state;
    static const char *const names[] = {"BATCH", "BATCH_SIZE", "EPOCHS", "LR", "COLOUR", "CONFIG", "LEARNING_RATE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "CONVOY_%s", names[i]);
        unsetenv(name);
    }
    return 0;
}

int main(void)
{
    if (!mkdtemp(folder)) {
        return 1;
    }
    snprintf(file, sizeof file, "%s/options.yaml", folder);
#define TEST(name) cmocka_unit_test_setup_teardown(name, clear_environment, clear_environment)
    const struct CMUnitTest tests[] = {
        TEST(test_struct_keeps_its_defaults),
        TEST(test_every_type_is_read),
        TEST(test_aliases_and_per_rank_counts),
        TEST(test_line_wins_over_variable_over_file),
        TEST(test_later_file_wins),
        TEST(test_texts_of_a_line_are_joined),
        TEST(test_unknown_options_name_the_nearest),
        TEST(test_unique_beginning_is_enough),
        TEST(test_values_are_checked),
        TEST(test_missing_values_and_operands),
        TEST(test_bad_variables_are_named),
        TEST(test_misspelt_variables_are_refused),
        TEST(test_files_name_their_line),
        TEST(test_printed_values_read_back),
        TEST(test_help_comes_from_the_table),
        TEST(test_help_shows_each_form_of_a_line),
        TEST(test_exhausted_memory_is_told),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(file);
    rmdir(folder);
    return failed;
}
