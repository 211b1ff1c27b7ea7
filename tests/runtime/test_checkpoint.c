/* Checkpoints: what is saved comes back bit for bit, into any format, and by key; weights of a state_dict, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "runtime/checkpoint_record.h"
#include "runtime/checkpointed_run.h"

static void test_a_state_comes_back_bit_for_bit(void **state)
{
    static run saved, loaded;
    for (int i = 0; i < 2; i++) {
        cvy_dtype dtype = i ? CVY_F64 : CVY_F32;
        init_run(&saved, dtype);
        fill_run(&saved, i);
        save(*state, &saved, 100);
        init_run(&loaded, dtype);
        cvy_position position;
        const char *path = test_path(*state, "step-00000100");
        assert_int_equal(cvy_checkpoint_load(path, &loaded.state, &position), CVY_OK);
        assert_run_equal(&loaded, &saved);
        cvy_position expected = position_at(100);
        assert_memory_equal(&position, &expected, sizeof position);
        assert_int_equal(count_entries(*state), 1);
        assert_int_equal(count_entries(path), 3);
    }
}

static void test_a_checkpoint_loads_into_other_formats(void **state)
{
    static run saved, loaded;
    init_run(&saved, CVY_F32);
    fill_run(&saved, 1);
    save(*state, &saved, 1);
    init_run(&loaded, CVY_F64);
    for (int i = 0; i < TENSORS; i++) {
        loaded.tensor[i].tensor = (cvy_tensor){saved.tensor[i].shape, CVY_F64, CVY_FORMAT_PLAIN, false};
    }
    cvy_position position;
    assert_int_equal(cvy_checkpoint_load(test_path(*state, "step-00000001"), &loaded.state, &position), CVY_OK);
    const float *blocked = (const float *)saved.memory[0]; /* (o,i,h,w) lies at ((h*2 + w)*8 + i)*8 + o */
    for (int o = 0; o < 3; o++) {
        for (int i = 0; i < 2; i++) {
            for (int at = 0; at < 4; at++) {
                assert_true(loaded.memory[0][(o * 2 + i) * 4 + at] == (double)blocked[(at * 8 + i) * 8 + o]);
            }
        }
    }
}

static void test_an_optimizer_without_state_has_no_file(void **state)
{
    static run r;
    init_run(&r, CVY_F32);
    fill_run(&r, 1);
    r.state.count = 3;
    save(*state, &r, 1);
    const char *path = test_path(*state, "step-00000001");
    assert_int_equal(count_entries(path), 2);
    cvy_position position;
    assert_int_equal(cvy_checkpoint_load(path, &r.state, &position), CVY_OK);
    r.state.count = 4;
    assert_refused(path, &r, "step-00000001", "no optimizer.safetensors");
    save(*state, &r, 2);
    r.state.count = 3; /* evaluation passes the optimizer's file over */
    assert_int_equal(cvy_checkpoint_load(test_path(*state, "step-00000002"), &r.state, &position), CVY_OK);
}

static void test_saving_again_replaces(void **state)
{
    static run first, second, loaded;
    init_run(&first, CVY_F32);
    fill_run(&first, 1);
    init_run(&second, CVY_F32);
    fill_run(&second, 2);
    save(*state, &first, 5);
    save(*state, &second, 5);
    init_run(&loaded, CVY_F32);
    cvy_position position;
    assert_int_equal(cvy_checkpoint_load(test_path(*state, "step-00000005"), &loaded.state, &position), CVY_OK);
    assert_run_equal(&loaded, &second);
    assert_int_equal(count_entries(*state), 1);
}

static void test_a_whole_checkpoint_of_another_model_names_the_key(void **state)
{
    static run saved, other;
    init_run(&saved, CVY_F32);
    fill_run(&saved, 1);
    save(*state, &saved, 1);
    const char *path = test_path(*state, "step-00000001");
    init_run(&other, CVY_F32);
    other.tensor[3].shape = CVY_SHAPE(3, 2, 4); /* as many elements */
    assert_refused(path, &other, "optimizer.safetensors", "momentum.conv.weight: found shape 3x2x2x2, expected 3x2x4");
    init_run(&other, CVY_F32);
    other.tensor[2].name = "bn.running_var";
    assert_refused(path, &other, "model.safetensors", "key bn.running_var is missing, expected shape 3");
    init_run(&other, CVY_F32);
    other.tensor[2] = other.tensor[3];
    other.state.count = 3;
    assert_refused(path, &other, "model.safetensors", "key bn.running_mean is none of the model's");
}

/* A state_dict as PyTorch saves it: any order, half precision, and a counter that is passed over. */
static void test_weights_of_a_state_dict_load_by_key(void **state)
{
    static run r, before;
    static const char header[] =
        "{\"bn.num_batches_tracked\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
        "\"bn.running_mean\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[8,14]}%s}";
    static const char surplus[] = ",\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[14,14]}";
    const char *path = test_path(*state, "w.safetensors");
    const uint16_t mean[3] = {0x3f80, 0xc000, 0x4049};
    init_run(&r, CVY_F32);
    r.tensor[0] = r.tensor[2];
    r.state.count = 1;
    for (int i = 0; i < 2; i++) {
        char bytes[512] = {0};
        size_t text = (size_t)snprintf(bytes + 8, sizeof bytes - 8, header, i ? surplus : "");
        memcpy(bytes, &(uint64_t){text}, 8);
        memcpy(bytes + 8 + text + 8, mean, sizeof mean);
        assert_true(put_test_file(path, bytes, 8 + text + 14));
        before = r;
        cvy_status status = cvy_weights_load(path, &r.state);
        const float *got = (const float *)r.memory[2];
        if (i == 0) {
            assert_int_equal(status, CVY_OK);
            assert_true(got[0] == 1 && got[1] == -2 && got[2] == 3.140625f);
        } else {
            assert_int_equal(status, CVY_ERR_CHECKPOINT);
            assert_non_null(strstr(cvy_error_message(), "w.safetensors: key fc.weight is none of the model's"));
            assert_run_equal(&r, &before);
        }
    }
}

static void test_saved_weights_load_without_the_optimizer(void **state)
{
    static run r, loaded;
    const char *path = test_path(*state, "w.safetensors");
    init_run(&r, CVY_F32);
    fill_run(&r, 1);
    assert_int_equal(cvy_weights_save(path, &r.state), CVY_OK);
    init_run(&loaded, CVY_F32);
    assert_int_equal(cvy_weights_load(path, &loaded.state), CVY_OK);
    assert_memory_equal(loaded.memory, r.memory, 3 * sizeof r.memory[0]);
    for (int i = 0; i < MOST_ELEMENTS; i++) {
        assert_true(loaded.memory[3][i] == 0); /* the velocity is not of the file */
    }
    assert_int_equal(count_entries(*state), 1);
}

/* state.json as the first versions wrote it, whose checksum is part of it: what it does not say is not known. */
static void test_a_record_of_an_older_version_loads(void **state)
{
    static const char text[] = "{\n  \"schema\": 1,\n  \"step\": 3,\n  \"epoch\": 1,\n  \"sample\": 32,\n"
                               "  \"samples_total\": 96,\n  \"epoch_loss_sum\": 74.27126140747157,\n"
                               "  \"epoch_correct\": 1,\n  \"best_metric\": 0.0625,\n  \"best_step\": 2,\n"
                               "  \"seed\": \"0000000000000001\",\n  \"model_hash\": \"f34923b2bcc93d97\",\n"
                               "  \"files\": {\n    \"model.safetensors\": {\n      \"bytes\": 1724968,\n"
                               "      \"xxh3\": \"8a6ce2cd8e7cdcd3\"\n    },\n    \"optimizer.safetensors\": {\n"
                               "      \"bytes\": 1725040,\n      \"xxh3\": \"1fbc9144308bff8d\"\n    }\n  },\n"
                               "  \"checksum\": \"b43a783f6565a602\"\n}\n";
    cvy_checkpoint_record record;
    assert_true(put_test_file(test_path(*state, "state.json"), text, sizeof text - 1));
    if (cvy_checkpoint_record_load(*state, &record) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    assert_int_equal(record.position.sample, 32);
    assert_int_equal(record.position.batch, 0);
    assert_int_equal(record.position.train_samples, 0);
    assert_string_equal(record.position.data, "");
    assert_true(isnan(record.position.end_metric));
}

/* Of steps 1 and 2 the first has the best result of all epochs, unless `steps` ended at 2 with a better one. */
static void test_the_best_is_found(void **state)
{
    static const struct {
        double end_metric;
        const char *best;
    } cases[] = {{NAN, "step-00000001"}, {0.4, "step-00000001"}, {0.6, "step-00000002"}};
    static run r;
    init_run(&r, CVY_F32);
    fill_run(&r, 1);
    save(*state, &r, 1);
    for (size_t i = 0; i < 3; i++) {
        char *path = NULL;
        cvy_position position = position_at(2);
        position.best_step = 1;
        position.best_metric = 0.5;
        position.end_metric = cases[i].end_metric;
        assert_int_equal(cvy_checkpoint_save(*state, &r.state, &position), CVY_OK);
        assert_int_equal(cvy_checkpoint_find_best(*state, &path), CVY_OK);
        assert_string_equal(path, test_path(*state, cases[i].best));
        cvy_free(path);
    }
}

static void test_names_are_found(void **state)
{
    (void)state;
    static run r;
    init_run(&r, CVY_F32);
    assert_ptr_equal(cvy_state_find(&r.state, "bn.running_mean"), &r.tensor[2]);
    assert_null(cvy_state_find(&r.state, "bn.running_mea"));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, create_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_a_state_comes_back_bit_for_bit),
        IN_FOLDER(test_a_checkpoint_loads_into_other_formats),
        IN_FOLDER(test_an_optimizer_without_state_has_no_file),
        IN_FOLDER(test_saving_again_replaces),
        IN_FOLDER(test_a_whole_checkpoint_of_another_model_names_the_key),
        IN_FOLDER(test_weights_of_a_state_dict_load_by_key),
        IN_FOLDER(test_saved_weights_load_without_the_optimizer),
        IN_FOLDER(test_a_record_of_an_older_version_loads),
        IN_FOLDER(test_the_best_is_found),
        cmocka_unit_test(test_names_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
