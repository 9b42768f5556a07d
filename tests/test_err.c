/* Errors: which exit code an errno becomes, and what a config file's trouble is called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "core/err.h"

static void test_a_lack_that_passes_is_to_try_later_and_a_disk_that_fails_is_not(void **state)
{
	(void)state;
	assert_int_equal(err_code_of(ENOSPC), ERR_IO);
	assert_int_equal(err_code_of(EIO), ERR_IO);
	assert_int_equal(err_code_of(ENOMEM), ERR_TEMP);
	assert_int_equal(err_code_of(EMFILE), ERR_TEMP);
	assert_int_equal(err_code_of(EAGAIN), ERR_TEMP);
	assert_int_equal(err_code_of(ENOLCK), ERR_TEMP);
	assert_int_equal(err_code_of(ENOENT), ERR_NOTFOUND);
	assert_int_equal(err_code_of(EROFS), ERR_NOPERM);
}

static void test_a_config_file_may_be_wrong_but_a_disk_is_no_config(void **state)
{
	(void)state;
	struct err missing = {0}, broken = {0};
	errno = ENOENT;
	err_errno(&missing, "config/gates.json", "cannot open");
	err_in_config(&missing);
	assert_int_equal(missing.code, ERR_CONFIG);
	errno = EIO;
	err_errno(&broken, "config/gates.json", "cannot read");
	err_in_config(&broken);
	assert_int_equal(broken.code, ERR_IO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_lack_that_passes_is_to_try_later_and_a_disk_that_fails_is_not),
		cmocka_unit_test(test_a_config_file_may_be_wrong_but_a_disk_is_no_config),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
