/* The hash against the authors' test vectors, and what it must not depend on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"

/* 64-bit FNV-1a of "", "a" and "foobar", from the table in Fowler, Noll and Vo's own test program. */
static void test_published_vectors(void **state)
{
    (void)state;
    assert_true(cvy_hash_text(CVY_HASH_INIT, "") == UINT64_C(0xcbf29ce484222325));
    assert_true(cvy_hash_text(CVY_HASH_INIT, "a") == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(cvy_hash_text(CVY_HASH_INIT, "foobar") == UINT64_C(0x85944171f73967e8));
}

/* "foobar12" as a word, lowest byte first: 'f' is the lowest. */
static void test_words_go_in_from_their_lowest_byte(void **state)
{
    (void)state;
    uint64_t word = UINT64_C(0x32317261626f6f66);
    assert_true(cvy_hash_word(CVY_HASH_INIT, word) == cvy_hash_text(CVY_HASH_INIT, "foobar12"));
}

static void test_equal_numbers_have_equal_hashes(void **state)
{
    (void)state;
    assert_true(cvy_hash_real(CVY_HASH_INIT, -0.0) == cvy_hash_real(CVY_HASH_INIT, 0.0));
    assert_true(cvy_hash_real(CVY_HASH_INIT, 1.0) != cvy_hash_real(CVY_HASH_INIT, 1.0 + 0x1p-52));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_vectors),
        cmocka_unit_test(test_words_go_in_from_their_lowest_byte),
        cmocka_unit_test(test_equal_numbers_have_equal_hashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
