/* Machine files: what they say is taken, what is printed reads back, and names find them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/memory.h"
#include "folder.h"
#include "machine/machine.h"

static const char *const shipped[] = {"abci",      "abci-2x-links", "cpu-2core", "dgx-a100",     "dgx-a100-80gb",
                                      "dgx-h100",  "dgx1-p100",     "dgx1-v100", "dgx2",         "ethernet-cpu",
                                      "k80",       "knl",           "laptop",    "m60",          "v100-10gbe",
                                      NULL};

/* Every key that there is, away from its default; sources at three depths. */
static const char everything[] =
    "name: all\n"
    "summary: 'every key: \"quoted\" \\ and \303\251'\n"
    "source: top\n"
    "nodes: 6\n"
    "devices-per-node: {value: 4, source: own}\n"
    "device:\n"
    "  name: d\n"
    "  kind: gpu\n"
    "  source: device\n"
    "  cores: 3\n"
    "  vector-bits: 128\n"
    "  memory: 1.5 GiB\n"
    "  memory-bandwidth: 10 GB/s\n"
    "  launch: 5 us\n"
    "  slice-floor: 0.25\n"
    "  spread: 0.02\n"
    "  price: 1.25 USD/h\n"
    "  kernel-tables: [a.csv, b.csv]\n"
    "  predictors: [p.yaml]\n"
    "  peak: {fp64: 1 TFLOP/s, fp32: 2 TFLOP/s, tf32: 3 TFLOP/s, fp16: 4 TFLOP/s, bf16: 5 TFLOP/s}\n"
    "  efficiency:\n"
    "    - {kernel: convolution, pass: backward-data, precision: fp32, peak: 0.5, source: run}\n"
    "    - {release: r 2, kernel: winograd-convolution, bandwidth: 0.75, peak: 2, error: 0.125}\n"
    "    - {}\n"
    "links:\n"
    "  - {name: inner, connects: device, endpoints: 4, latency: 1 us, bandwidth: 8 Gbit/s, ports: 3, rails: 2}\n"
    "  - {name: outer, connects: inner, endpoints: 8, latency: 2 us, bandwidth: 2 GB/s, oversubscription: 1.5,\n"
    "     staged-latency: 3 us, staged-bandwidth: 3 GB/s}\n"
    "collectives:\n"
    "  - {collective: all-reduce, algorithm: double-tree, level: outer, up-to: 4 MB, up-to-ranks: 64, call: 7 us,\n"
    "     for: gradients, latency: 9 us, bandwidth: 6 GB/s}\n"
    "  - {collective: all-to-all, algorithm: pairwise, level: any}\n"
    "  - {collective: point-to-point, level: inner, for: space, call: 3 us, rails: 2, release: q}\n"
    "nccl: {pcie: yes, ampere: yes, amd: yes, channels: 4}\n"
    "storage: {read: 1 GB/s, total: 20 GB/s}\n"
    "execution: {framework: f 1.0, release: r 2, fuse: none, overlap: yes, bucket: 25 MiB, pack: 42 us,\n"
    "  host-halos: yes, serial-halos: yes, leader-broadcast: no,\n"
    "  leader-exchange: [data+spatial], staging: leader, layer-host: 300 us, slice-host: 77 us,\n"
    "  whole-channels: yes, whole-dense: yes, local-norms: yes,\n"
    "  shard-sums: yes, recompute: [pipeline], leader-input: [data+filter], leader-skew: 0.3,\n"
    "  reserved: 500 MB,\n"
    "  managed-memory: [spatial, filter], managed-over: 200 MB, managed-bandwidth: 4 GB/s}\n";

static cvy_machine *load_text(const char *folder, const char *text)
{
    cvy_machine *machine = NULL;
    const char *path = test_path(folder, "m.yaml");
    assert_true(put_test_file(path, text, strlen(text)));
    if (cvy_machine_load(path, &machine) != CVY_OK) {
        fail_msg("%s\n%s", cvy_error_message(), text);
    }
    return machine;
}

static void assert_same_text(const char *a, const char *b)
{
    assert_int_equal(!a, !b);
    if (a) {
        assert_string_equal(a, b);
    }
}

/* Every figure by its bytes or its words, without the tables that reader and writer share. */
static void assert_same_device(const cvy_device *a, const cvy_device *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->cores, b->cores);
    assert_int_equal(a->vector_bits, b->vector_bits);
    assert_int_equal(a->memory_bytes, b->memory_bytes);
    assert_memory_equal(a->peak_flop_per_s, b->peak_flop_per_s, sizeof a->peak_flop_per_s);
    assert_true(a->memory_Bps == b->memory_Bps && a->launch_s == b->launch_s && a->spread == b->spread);
    assert_true(a->slice_floor == b->slice_floor && a->price_usd_per_h == b->price_usd_per_h);
    assert_int_equal(a->efficiencies, b->efficiencies);
    for (int i = 0; i < a->efficiencies; i++) {
        const cvy_efficiency *x = &a->efficiency[i], *y = &b->efficiency[i];
        assert_same_text(x->release, y->release);
        assert_true(x->kernel == y->kernel && x->pass == y->pass && x->precision == y->precision);
        assert_true(x->peak == y->peak && x->bandwidth == y->bandwidth && x->error == y->error);
    }
    for (int i = 0; i <= CVY_MAX_FILES; i++) {
        assert_same_text(a->kernel_table[i], b->kernel_table[i]);
        assert_same_text(a->predictor[i], b->predictor[i]);
    }
}

static void assert_same_links(const cvy_machine *a, const cvy_machine *b)
{
    assert_int_equal(a->levels, b->levels);
    for (int i = 0; i < a->levels; i++) {
        const cvy_level *x = &a->level[i], *y = &b->level[i];
        assert_string_equal(x->name, y->name);
        assert_true(x->endpoints == y->endpoints && x->devices == y->devices && x->ports == y->ports);
        assert_int_equal(x->rails, y->rails);
        assert_true(x->latency_s == y->latency_s && x->bandwidth_Bps == y->bandwidth_Bps);
        assert_true(x->oversubscription == y->oversubscription);
        assert_true(x->staged_latency_s == y->staged_latency_s && x->staged_Bps == y->staged_Bps);
    }
    assert_int_equal(a->collectives, b->collectives);
    for (int i = 0; i < a->collectives; i++) {
        assert_memory_equal(&a->collective[i], &b->collective[i], offsetof(cvy_collective_rule, release));
        assert_same_text(a->collective[i].release, b->collective[i].release);
    }
    assert_true(a->nccl.pcie == b->nccl.pcie && a->nccl.ampere == b->nccl.ampere && a->nccl.amd == b->nccl.amd);
    assert_int_equal(a->nccl.channels, b->nccl.channels);
}

static void assert_same_execution(const cvy_execution *x, const cvy_execution *y)
{
    assert_same_text(x->framework, y->framework);
    assert_same_text(x->release, y->release);
    assert_int_equal(x->fuse, y->fuse);
    assert_true(x->overlap == y->overlap && x->bucket_bytes == y->bucket_bytes && x->pack_s == y->pack_s);
    assert_true(x->host_halos == y->host_halos && x->leader_exchange == y->leader_exchange);
    assert_true(x->serial_halos == y->serial_halos && x->leader_broadcast == y->leader_broadcast);
    assert_true(x->staging == y->staging && x->layer_host_s == y->layer_host_s);
    assert_true(x->slice_host_s == y->slice_host_s && x->managed_memory == y->managed_memory);
    assert_true(x->shard_sums == y->shard_sums && x->recompute == y->recompute);
    assert_true(x->whole_channels == y->whole_channels && x->whole_dense == y->whole_dense);
    assert_true(x->local_norms == y->local_norms && x->leader_input == y->leader_input);
    assert_true(x->leader_skew == y->leader_skew && x->reserved_bytes == y->reserved_bytes);
    assert_true(x->managed_over_bytes == y->managed_over_bytes && x->managed_Bps == y->managed_Bps);
}

static void assert_same(const cvy_machine *a, const cvy_machine *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->summary, b->summary);
    assert_true(a->nodes == b->nodes && a->devices_per_node == b->devices_per_node);
    assert_same_device(&a->device, &b->device);
    assert_same_links(a, b);
    assert_memory_equal(&a->storage, &b->storage, sizeof a->storage);
    assert_same_execution(&a->execution, &b->execution);
    assert_int_equal(a->sources, b->sources);
    for (int i = 0; i < a->sources; i++) {
        assert_string_equal(a->source[i].text, cvy_machine_find_source(b, (const char *)b + a->source[i].offset));
    }
}

static void assert_printed_reads_back(const char *folder, const cvy_machine *machine)
{
    cvy_text text = {0};
    cvy_machine_print(machine, &text);
    char *yaml = cvy_text_take(&text);
    assert_non_null(yaml);
    cvy_machine *back = load_text(folder, yaml);
    assert_same(machine, back);
    cvy_machine_destroy(&back);
    cvy_free(yaml);
}

static void test_every_key_arrives(void **state)
{
    cvy_machine *m = load_text(*state, everything);
    const cvy_device *d = &m->device;
    assert_string_equal(m->summary, "every key: \"quoted\" \\ and \303\251");
    assert_int_equal(cvy_machine_devices(m), 24);
    assert_true(d->kind == CVY_DEVICE_GPU && d->cores == 3 && d->vector_bits == 128);
    assert_int_equal(d->memory_bytes, 1610612736); /* 1.5 x 2^30 */
    assert_true(d->memory_Bps == 1e10 && d->slice_floor == 0.25 && d->spread == 0.02 && d->price_usd_per_h == 1.25);
    assert_string_equal(d->kernel_table[1], "b.csv");
    assert_null(d->kernel_table[2]);
    for (int i = 0; i < CVY_PRECISION_COUNT; i++) {
        assert_true(d->peak_flop_per_s[i] == (i + 1) * 1e12);
    }
    assert_int_equal(d->efficiencies, 3);
    assert_true(d->efficiency[0].kernel == CVY_OP_CONVOLUTION && d->efficiency[0].pass == CVY_PASS_BACKWARD_DATA);
    assert_true(d->efficiency[0].precision == CVY_PRECISION_FP32 && d->efficiency[0].peak == 0.5);
    assert_true(d->efficiency[1].kernel == CVY_KERNEL_WINOGRAD_CONVOLUTION && d->efficiency[1].bandwidth == 0.75);
    assert_true(d->efficiency[1].peak == 2 && d->efficiency[1].error == 0.125 && d->efficiency[2].error == 0.5);
    assert_string_equal(d->efficiency[1].release, "r 2");
    assert_string_equal(m->execution.release, "r 2");
    assert_int_equal(m->execution.fuse, CVY_FUSING_NONE);
    assert_true(m->level[0].devices == 4 && m->level[1].devices == 32); /* 4, then 8 times 4 */
    assert_true(m->level[0].bandwidth_Bps == 1e9 && m->level[0].ports == 3 && m->level[1].ports == 1);
    assert_true(m->level[0].rails == 2 && m->level[1].rails == 1);
    assert_true(m->collective[0].level == 1 && m->collective[0].up_to_bytes == 4000000);
    assert_true(m->collective[0].algorithm == CVY_ALGORITHM_DOUBLE_TREE && m->collective[0].up_to_ranks == 64);
    assert_true(m->collective[1].level == CVY_ANY && m->collective[1].collective == CVY_COLLECTIVE_ALL_TO_ALL);
    assert_true(m->collective[0].traffic == CVY_TRAFFIC_GRADIENTS && m->collective[1].traffic == CVY_ANY);
    assert_true(m->collective[2].algorithm == CVY_ANY && m->collective[2].traffic == CVY_TRAFFIC_SPACE);
    assert_true(m->collective[2].rails == 2 && m->collective[0].rails == 0);
    assert_true(m->collective[0].release == NULL && strcmp(m->collective[2].release, "q") == 0);
    assert_true(m->nccl.pcie && m->nccl.ampere && m->nccl.amd && m->nccl.channels == 4);
    assert_true(m->storage.total_Bps == 2e10 && m->execution.bucket_bytes == 25 * 1048576);
    assert_int_equal(m->execution.managed_memory, 1u << CVY_STRATEGY_SPATIAL | 1u << CVY_STRATEGY_FILTER);
    assert_true(m->execution.whole_channels && m->execution.whole_dense && m->execution.local_norms);
    assert_true(m->execution.shard_sums && m->execution.recompute == 1u << CVY_STRATEGY_PIPELINE);
    assert_true(m->execution.leader_skew == 0.3 && m->execution.reserved_bytes == 500000000);
    assert_int_equal(m->execution.leader_input, 1u << CVY_STRATEGY_DATA_FILTER);
    assert_true(m->execution.overlap && m->execution.staging == CVY_STAGING_LEADER);
    cvy_machine_destroy(&m);
    assert_null(m);
}

/* The nearest source holds: of the figure, of its mapping, of one around it; names have none. */
static void test_sources_are_inherited(void **state)
{
    cvy_machine *m = load_text(*state, everything);
    assert_string_equal(cvy_machine_find_source(m, &m->devices_per_node), "own");
    assert_string_equal(cvy_machine_find_source(m, &m->nodes), "top");
    assert_string_equal(cvy_machine_find_source(m, &m->device.cores), "device");
    assert_string_equal(cvy_machine_find_source(m, &m->device.peak_flop_per_s[CVY_PRECISION_BF16]), "device");
    assert_string_equal(cvy_machine_find_source(m, &m->device.efficiency[0].peak), "run");
    assert_string_equal(cvy_machine_find_source(m, &m->level[1].latency_s), "top");
    assert_null(cvy_machine_find_source(m, &m->device.efficiency[0].bandwidth)); /* not given */
    assert_null(cvy_machine_find_source(m, &m->device.name));
    cvy_machine_destroy(&m);
}

static void test_every_key_reads_back(void **state)
{
    cvy_machine *machine = load_text(*state, everything);
    assert_printed_reads_back(*state, machine);
    cvy_machine_destroy(&machine);
}

static void test_shipped_machines_read_back(void **state)
{
    for (int i = 0; shipped[i]; i++) {
        cvy_machine *machine = NULL;
        if (cvy_machine_open(shipped[i], &machine) != CVY_OK) {
            fail_msg("%s", cvy_error_message());
        }
        assert_string_equal(machine->name, shipped[i]);
        assert_non_null(strstr(machine->file, shipped[i]));
        assert_printed_reads_back(*state, machine);
        cvy_machine_destroy(&machine);
    }
}

/* Each number of a shipped file says where it is from. */
static void test_shipped_figures_have_sources(void **state)
{
    (void)state;
    for (int i = 0; shipped[i]; i++) {
        cvy_machine *m = NULL;
        assert_int_equal(cvy_machine_open(shipped[i], &m), CVY_OK);
        assert_non_null(cvy_machine_find_source(m, &m->device.cores));
        assert_non_null(cvy_machine_find_source(m, &m->device.memory_bytes));
        assert_non_null(cvy_machine_find_source(m, &m->device.memory_Bps));
        for (int j = 0; j < CVY_PRECISION_COUNT; j++) {
            const double *peak = &m->device.peak_flop_per_s[j];
            assert_true(*peak == 0 || cvy_machine_find_source(m, peak));
        }
        assert_true(m->device.launch_s == 0 || cvy_machine_find_source(m, &m->device.launch_s));
        for (int j = 0; j < m->device.efficiencies; j++) {
            assert_non_null(cvy_machine_find_source(m, &m->device.efficiency[j].bandwidth));
        }
        for (int j = 0; j < m->levels; j++) {
            assert_non_null(cvy_machine_find_source(m, &m->level[j].endpoints));
            assert_non_null(cvy_machine_find_source(m, &m->level[j].latency_s));
            assert_non_null(cvy_machine_find_source(m, &m->level[j].bandwidth_Bps));
            assert_true(m->level[j].ports == 1 || cvy_machine_find_source(m, &m->level[j].ports));
            assert_true(m->level[j].rails == 1 || cvy_machine_find_source(m, &m->level[j].rails));
        }
        for (int j = 0; j < m->collectives; j++) {
            const cvy_collective_rule *rule = &m->collective[j];
            assert_true(rule->algorithm == CVY_ANY || cvy_machine_find_source(m, &rule->algorithm));
            assert_true(rule->call_s == 0 || cvy_machine_find_source(m, &rule->call_s));
            assert_true(rule->latency_s == 0 || cvy_machine_find_source(m, &rule->latency_s));
            assert_true(rule->bandwidth_Bps == 0 || cvy_machine_find_source(m, &rule->bandwidth_Bps));
            assert_true(rule->rails == 0 || cvy_machine_find_source(m, &rule->rails));
        }
        cvy_machine_destroy(&m);
    }
}

/* platform_abci.csv of the paper's data: 9, 40.31, 40.49, 40.98 us; 50 and 12.5 GB/s; 4, 68, 136 GPUs; 1:3. */
static void test_abci_is_what_the_paper_says(void **state)
{
    (void)state;
    static const double latency_us[] = {9, 40.31, 40.49, 40.98};
    static const int64_t devices[] = {4, 68, 136, 4352};
    cvy_machine *m = NULL;
    assert_int_equal(cvy_machine_open("abci", &m), CVY_OK);
    assert_int_equal(m->levels, 4);
    for (int i = 0; i < 4; i++) {
        assert_true(m->level[i].latency_s > latency_us[i] * 0.9999e-6);
        assert_true(m->level[i].latency_s < latency_us[i] * 1.0001e-6);
        assert_true(m->level[i].bandwidth_Bps == (i == 0 ? 50e9 : 12.5e9));
        assert_int_equal(m->level[i].devices, devices[i]);
    }
    assert_int_equal(cvy_machine_devices(m), 4352);
    assert_true(m->level[3].oversubscription == 3);
    assert_false(m->execution.overlap);
    assert_true(m->execution.whole_channels && m->execution.whole_dense && m->execution.local_norms);
    assert_int_equal(m->execution.recompute, 1u << CVY_STRATEGY_PIPELINE);
    cvy_machine_destroy(&m);
}

static void test_here_has_cores_vectors_and_a_block(void **state)
{
    (void)state;
    cvy_machine *machine = NULL;
    assert_int_equal(cvy_machine_open("here", &machine), CVY_OK);
    assert_true(machine->device.cores >= 1);
    assert_true(machine->device.vector_bits >= 128);
    assert_int_equal(cvy_machine_devices(machine), 1);
    cvy_machine_destroy(&machine);
    assert_int_equal(cvy_machine_open("cpu-2core", &machine), CVY_OK);
    assert_int_equal(cvy_device_block(&machine->device), 16); /* 512 bits are 16 floats */
    cvy_machine_destroy(&machine);
    assert_int_equal(cvy_machine_open("laptop", &machine), CVY_OK);
    assert_int_equal(cvy_device_block(&machine->device), 8);
    cvy_machine_destroy(&machine);
}

static void test_list_has_every_machine_with_a_line(void **state)
{
    (void)state;
    cvy_machine_names names = {0};
    assert_int_equal(cvy_machine_list(&names), CVY_OK);
    assert_string_equal(names.entry[0].name, "here");
    int found = 0;
    for (int i = 1; i < names.count; i++) {
        assert_true(i == 1 || strcmp(names.entry[i - 1].name, names.entry[i].name) < 0);
        assert_null(strchr(names.entry[i].summary, '\n'));
        for (int j = 0; shipped[j]; j++) {
            found += strcmp(names.entry[i].name, shipped[j]) == 0;
        }
    }
    assert_int_equal(found, sizeof shipped / sizeof shipped[0] - 1);
    cvy_machine_names_clear(&names);
}

static void test_a_path_comes_first_and_a_wrong_name_is_told(void **state)
{
    cvy_machine *machine = load_text(*state, everything);
    cvy_machine_destroy(&machine);
    assert_int_equal(cvy_machine_open(test_path(*state, "m.yaml"), &machine), CVY_OK);
    assert_string_equal(machine->name, "all");
    cvy_machine_destroy(&machine);
    assert_int_equal(cvy_machine_open("abcy", &machine), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "no machine 'abcy'; did you mean 'abci'?");
    assert_int_equal(cvy_machine_open("../machines/abci", &machine), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "expected a file or one of here, abci,"));
    assert_null(machine);
    assert_int_equal(cvy_status_exit_code(CVY_ERR_INPUT), 2);
}

/* Behind a colon stands a release that the file has efficiencies, or rules of collectives, of. */
static void test_a_release_is_asked_for_by_name(void **state)
{
    char name[300];
    cvy_machine *machine = load_text(*state, everything);
    cvy_machine_destroy(&machine);
    snprintf(name, sizeof name, "%s:r 2", test_path(*state, "m.yaml"));
    assert_int_equal(cvy_machine_open(name, &machine), CVY_OK);
    assert_string_equal(machine->execution.release, "r 2");
    cvy_machine_destroy(&machine);
    snprintf(name, sizeof name, "%s:q", test_path(*state, "m.yaml"));
    assert_int_equal(cvy_machine_open(name, &machine), CVY_OK);
    cvy_machine_destroy(&machine);
    snprintf(name, sizeof name, "%s:r 3", test_path(*state, "m.yaml"));
    assert_int_equal(cvy_machine_open(name, &machine), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "machine all: no release 'r 3', expected one of r 2, q");
    assert_int_equal(cvy_machine_open("here:r", &machine), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(),
                        "machine here: no release 'r', expected none, it tells of no software");
    assert_int_equal(cvy_machine_open("abcy:r", &machine), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "no machine 'abcy'; did you mean 'abci'?");
    assert_null(machine);
}

/* Whatever allocation fails, it is told and nothing is left; valgrind and the sanitizers look for the rest. */
static void test_running_out_of_memory_is_told(void **state)
{
    cvy_machine *machine = load_text(*state, everything);
    cvy_machine_names names = {0};
    cvy_machine_destroy(&machine);
    for (int i = 0; i < 200; i++) {
        cvy_memory_fail_after(i);
        cvy_status status = cvy_machine_load(test_path(*state, "m.yaml"), &machine);
        cvy_memory_fail_after(-1);
        assert_true(status == CVY_ERR_MEMORY || status == CVY_OK);
        assert_int_equal(!machine, status != CVY_OK);
        cvy_machine_destroy(&machine);
    }
    cvy_memory_fail_after(3);
    assert_int_equal(cvy_machine_list(&names), CVY_ERR_MEMORY);
    cvy_memory_fail_after(-1);
    assert_int_equal(names.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_key_arrives, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_sources_are_inherited, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_every_key_reads_back, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_shipped_machines_read_back, create_test_folder, remove_test_folder),
        cmocka_unit_test(test_shipped_figures_have_sources),
        cmocka_unit_test(test_abci_is_what_the_paper_says),
        cmocka_unit_test(test_here_has_cores_vectors_and_a_block),
        cmocka_unit_test(test_list_has_every_machine_with_a_line),
        cmocka_unit_test_setup_teardown(test_a_release_is_asked_for_by_name, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_path_comes_first_and_a_wrong_name_is_told, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_running_out_of_memory_is_told, create_test_folder, remove_test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
