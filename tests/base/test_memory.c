/* Counted memory: what is counted, what is zero, how failures are made and worded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/memory_high.h"

static int all_zero(const unsigned char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (memory[i]) {
            return 0;
        }
    }
    return 1;
}

static void test_calloc_is_zeroed_and_counted(void **state)
{
    (void)state;
    int64_t before = cvy_memory_allocations();
    unsigned char *memory = cvy_calloc(1000, 3);
    assert_non_null(memory);
    assert_true(all_zero(memory, 3000));
    assert_int_equal(cvy_memory_allocations() - before, 1);
    cvy_free(memory);
    cvy_free(NULL);
    assert_int_equal(cvy_memory_allocations() - before, 1);
}

/* Nothing asked for is still an address of its own: NULL means failure alone. */
static void test_calloc_of_nothing_is_not_null(void **state)
{
    (void)state;
    void *none = cvy_calloc(0, 8);
    void *empty = cvy_calloc(8, 0);
    assert_non_null(none);
    assert_non_null(empty);
    assert_ptr_not_equal(none, empty);
    cvy_free(none);
    cvy_free(empty);
}

/* 2^63 objects of 4 bytes are 2^65 bytes: the product wraps to 0 in 64 bits. */
static void test_products_that_wrap_fail(void **state)
{
    (void)state;
    cvy_error_clear();
    assert_null(cvy_calloc((size_t)1 << 63, 4));
    assert_string_equal(cvy_error_message(), "no memory for 9223372036854775808 objects of 4 bytes");
    int *kept = cvy_calloc(2, sizeof *kept);
    assert_non_null(kept);
    kept[1] = 42;
    assert_null(cvy_recalloc(kept, 2, (size_t)1 << 63, sizeof *kept));
    assert_int_equal(kept[1], 42);
    cvy_free(kept);
}

static void test_recalloc_keeps_old_and_zeroes_new(void **state)
{
    (void)state;
    uint16_t *list = cvy_calloc(3, sizeof *list);
    assert_non_null(list);
    memset(list, 0xff, 3 * sizeof *list);
    list = cvy_recalloc(list, 3, 1000, sizeof *list);
    assert_non_null(list);
    assert_int_equal(list[2], 0xffff);
    assert_true(all_zero((unsigned char *)(list + 3), 997 * sizeof *list));
    list = cvy_recalloc(list, 1000, 2, sizeof *list);
    assert_non_null(list);
    assert_int_equal(list[1], 0xffff);
    list = cvy_recalloc(list, 2, 4, sizeof *list);
    assert_int_equal(list[2] + list[3], 0);
    cvy_free(list);
    uint16_t *fresh = cvy_recalloc(NULL, 0, 5, sizeof *fresh);
    assert_non_null(fresh);
    assert_true(all_zero((unsigned char *)fresh, 5 * sizeof *fresh));
    cvy_free(fresh);
}

/* 100 entries in rooms of 16, 48, 112: three allocations. What stands there stays, a failure changes nothing. */
static void test_arrays_double_and_keep_their_entries(void **state)
{
    (void)state;
    int64_t *array = NULL;
    int capacity = 0;
    int64_t before = cvy_memory_allocations();
    for (int i = 0; i < 100; i++) {
        assert_int_equal(cvy_array_reserve(&array, i, &capacity, sizeof *array), CVY_OK);
        assert_int_equal(array[i], 0);
        array[i] = i + 1;
    }
    assert_int_equal(cvy_memory_allocations() - before, 3);
    assert_int_equal(capacity, 112);
    cvy_memory_fail_after(0);
    assert_int_equal(cvy_array_reserve(&array, 112, &capacity, sizeof *array), CVY_ERR_MEMORY);
    assert_int_equal(capacity, 112);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(array[i], i + 1);
    }
    cvy_free(array);
}

static void test_strdup(void **state)
{
    (void)state;
    char *copy = cvy_strdup("layer1.0.conv2");
    assert_string_equal(copy, "layer1.0.conv2");
    cvy_free(copy);
}

/* fail_after(2): two go well, the third fails, the fourth goes well again. */
static void test_the_asked_allocation_fails_once(void **state)
{
    (void)state;
    void *memory[4];
    cvy_memory_fail_after(2);
    for (int i = 0; i < 4; i++) {
        cvy_error_clear();
        memory[i] = cvy_calloc(16, 1);
        assert_int_equal(memory[i] == NULL, i == 2);
        assert_int_equal(strlen(cvy_error_message()) > 0, i == 2);
        cvy_free(memory[i]);
    }
    cvy_memory_fail_after(0);
    assert_null(cvy_strdup("x"));
    cvy_memory_fail_after(0);
    cvy_memory_fail_after(-1);
    memory[0] = cvy_calloc(1, 1);
    assert_non_null(memory[0]);
    cvy_free(memory[0]);
}

static void test_arena_and_growth_fail_when_asked(void **state)
{
    (void)state;
    cvy_arena arena = {0};
    int64_t held = cvy_memory_tensor_bytes();
    cvy_memory_fail_after(0);
    assert_int_equal(cvy_arena_create(100, &arena), CVY_ERR_MEMORY);
    assert_null(arena.base);
    assert_int_equal(cvy_memory_tensor_bytes(), held);
    char *kept = cvy_strdup("kept");
    assert_non_null(kept);
    cvy_memory_fail_after(0);
    assert_null(cvy_recalloc(kept, 5, 50, 1));
    assert_string_equal(kept, "kept");
    cvy_free(kept);
}

/* Sizes around a page (4 KiB) and around a huge page (2 MiB): every byte asked for is there, zero and aligned. */
static void test_arenas_are_zero_aligned_and_writable(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, (6 << 20) + 12345};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        cvy_arena arena;
        assert_int_equal(cvy_arena_create(sizes[i], &arena), CVY_OK);
        assert_int_equal((uintptr_t)arena.base % CVY_ARENA_ALIGNMENT, 0);
        assert_int_equal(arena.bytes, sizes[i]);
        assert_true(arena.mapped_bytes >= sizes[i]);
        assert_true(all_zero(arena.base, sizes[i]));
        memset(arena.base, 0xa5, arena.mapped_bytes);
        cvy_arena_destroy(&arena);
        assert_null(arena.base);
        cvy_arena_destroy(&arena);
    }
}

/* A huge page can only be given where the address is on its border. */
static void test_large_arenas_start_on_a_huge_page(void **state)
{
    (void)state;
    cvy_arena arena;
    assert_int_equal(cvy_arena_create((size_t)10 << 20, &arena), CVY_OK);
    assert_int_equal((uintptr_t)arena.base % (2 << 20), 0);
    cvy_arena_destroy(&arena);
}

/* 1000 and 500 at once, then 1000 goes and 200 comes: peak 1500; from a reset at 700, 100 more make 800. */
static void test_peak_is_the_most_held_at_once(void **state)
{
    (void)state;
    cvy_arena a, b, c, d;
    int64_t held = cvy_memory_tensor_bytes();
    cvy_memory_reset_peak();
    assert_int_equal(cvy_arena_create(1000, &a), CVY_OK);
    assert_int_equal(cvy_arena_create(500, &b), CVY_OK);
    cvy_arena_destroy(&a);
    assert_int_equal(cvy_arena_create(200, &c), CVY_OK);
    assert_int_equal(cvy_memory_tensor_bytes() - held, 700);
    assert_int_equal(cvy_memory_tensor_peak_bytes() - held, 1500);
    cvy_memory_reset_peak();
    assert_int_equal(cvy_memory_tensor_peak_bytes() - held, 700);
    assert_int_equal(cvy_arena_create(100, &d), CVY_OK);
    assert_int_equal(cvy_memory_tensor_peak_bytes() - held, 800);
    cvy_arena_destroy(&b);
    cvy_arena_destroy(&c);
    cvy_arena_destroy(&d);
    assert_int_equal(cvy_memory_tensor_bytes(), held);
}

static void test_arenas_beyond_the_address_space_fail(void **state)
{
    (void)state;
    cvy_arena arena = {0};
    assert_int_equal(cvy_arena_create(SIZE_MAX, &arena), CVY_ERR_MEMORY);
    assert_int_equal(cvy_arena_create((size_t)1 << 60, &arena), CVY_ERR_MEMORY);
    assert_non_null(strstr(cvy_error_message(), "no memory for 1.15 EB of tensors, "));
    assert_null(arena.base);
}

/* The system maps up to all of its memory and swap, whatever is in use, and ends a process when that is touched. */
static void test_more_than_is_available_is_refused_before_it_is_touched(void **state)
{
    (void)state;
    unsigned long long kilobytes, all = 0, free_now = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        all += sscanf(line, "MemTotal: %llu", &kilobytes) == 1 ? kilobytes : 0;
        all += sscanf(line, "SwapTotal: %llu", &kilobytes) == 1 ? kilobytes : 0;
        free_now += sscanf(line, "MemAvailable: %llu", &kilobytes) == 1 ? kilobytes : 0;
        free_now += sscanf(line, "SwapFree: %llu", &kilobytes) == 1 ? kilobytes : 0;
    }
    fclose(file);
    size_t between = (size_t)(free_now + 3 * (all - free_now) / 4) * 1024;
    assert_null(cvy_calloc(between, 1));
    assert_non_null(strstr(cvy_error_message(), " are available"));
    char *kept = cvy_strdup("kept");
    assert_non_null(kept);
    assert_null(cvy_recalloc(kept, 5, between, 1));
    assert_non_null(strstr(cvy_error_message(), " are available"));
    assert_string_equal(kept, "kept");
    cvy_free(kept);
}

/* ---- memory of high bandwidth ---- */

enum { MIB = 1 << 20 };

/* A machine with 8 MiB of it. */
static struct {
    int taken, given;
    int exhausted; /* take answers NULL */
} high_calls;

static size_t find_high_bytes(void) { return 8 * MIB; }

static void *take_high(size_t bytes, size_t alignment)
{
    void *memory = high_calls.exhausted ? NULL : aligned_alloc(alignment, bytes);
    if (memory) {
        memset(memory, 0xff, bytes);
        high_calls.taken++;
    }
    return memory;
}

static void give_high(void *memory)
{
    high_calls.given++;
    free(memory);
}

static const cvy_high_memory pretended = {find_high_bytes, take_high, give_high};

/* Room is what is there minus what was taken; sizes near the end of the address space do not wrap. */
static void test_an_arena_fits_whole_or_not(void **state)
{
    (void)state;
    assert_true(cvy_memory_fits_high(8, 0, 8) && cvy_memory_fits_high(3, 5, 8));
    assert_false(cvy_memory_fits_high(9, 0, 8) || cvy_memory_fits_high(4, 5, 8));
    assert_false(cvy_memory_fits_high(1, 0, 0) || cvy_memory_fits_high(1, 9, 8));
    assert_false(cvy_memory_fits_high(SIZE_MAX, 5, 8) || cvy_memory_fits_high(SIZE_MAX - 4, 5, 8));
}

/* Arenas of 3 MiB are 4 in huge pages: two fit into 8, a third does not, until one of them is given back. */
static void test_arenas_lie_in_high_memory_while_they_fit(void **state)
{
    (void)state;
    cvy_arena arena[4] = {{0}};
    cvy_memory_use_high(&pretended);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cvy_arena_create(3 * MIB, &arena[i]), CVY_OK);
        assert_ptr_equal(arena[i].high, i < 2 ? &pretended : NULL);
        assert_int_equal((uintptr_t)arena[i].base % (2 * MIB), 0);
        assert_true(all_zero(arena[i].base, arena[i].mapped_bytes));
    }
    assert_int_equal(high_calls.taken, 2);
    cvy_arena_destroy(&arena[2]);
    assert_int_equal(high_calls.given, 0);
    cvy_arena_destroy(&arena[0]);
    assert_int_equal(high_calls.given, 1);
    high_calls.exhausted = 1; /* another process was faster */
    assert_int_equal(cvy_arena_create(3 * MIB, &arena[2]), CVY_OK);
    assert_null(arena[2].high);
    high_calls.exhausted = 0;
    assert_int_equal(cvy_arena_create(3 * MIB, &arena[3]), CVY_OK);
    assert_ptr_equal(arena[3].high, &pretended);
    cvy_memory_use_high(NULL); /* who took it is who gets it back */
    for (int i = 0; i < 4; i++) {
        cvy_arena_destroy(&arena[i]);
    }
    assert_int_equal(high_calls.taken, 3);
    assert_int_equal(high_calls.given, 3);
}

/* Whatever this machine has: an answer without a failure, and an arena. */
static void test_this_machine_answers(void **state)
{
    (void)state;
    cvy_arena arena;
    size_t bytes = cvy_memory_high.find_bytes();
    assert_int_equal(cvy_arena_create(3 * MIB, &arena), CVY_OK);
    assert_true(bytes >= 4 * MIB || !arena.high);
    cvy_arena_destroy(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calloc_is_zeroed_and_counted),
        cmocka_unit_test(test_calloc_of_nothing_is_not_null),
        cmocka_unit_test(test_products_that_wrap_fail),
        cmocka_unit_test(test_recalloc_keeps_old_and_zeroes_new),
        cmocka_unit_test(test_arrays_double_and_keep_their_entries),
        cmocka_unit_test(test_strdup),
        cmocka_unit_test(test_the_asked_allocation_fails_once),
        cmocka_unit_test(test_arena_and_growth_fail_when_asked),
        cmocka_unit_test(test_arenas_are_zero_aligned_and_writable),
        cmocka_unit_test(test_large_arenas_start_on_a_huge_page),
        cmocka_unit_test(test_peak_is_the_most_held_at_once),
        cmocka_unit_test(test_arenas_beyond_the_address_space_fail),
        cmocka_unit_test(test_more_than_is_available_is_refused_before_it_is_touched),
        cmocka_unit_test(test_an_arena_fits_whole_or_not),
        cmocka_unit_test(test_arenas_lie_in_high_memory_while_they_fit),
        cmocka_unit_test(test_this_machine_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
