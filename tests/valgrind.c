/* Loaded into our programs under valgrind, so that they are confined there as far as valgrind can live with it. Valgrind before 3.23 knows
 * no Landlock and refuses its calls: they are answered as a kernel that has it would, so that no stage warns and tests see what they
 * see elsewhere. The filter of system calls is the real one, and lets pass besides what valgrind itself needs to end by a signal. */
#include <dlfcn.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

long syscall(long number, ...)
{
	va_list args;
	long a[6];
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_landlock_create_ruleset)
		return a[0] ? open("/dev/null", O_RDONLY | O_CLOEXEC) : 1; /* a set of rules, or the version */
	if (number == SYS_landlock_add_rule || number == SYS_landlock_restrict_self)
		return 0;
	long (*call)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int seccomp_load(scmp_filter_ctx filter)
{
	int (*add)(scmp_filter_ctx, uint32_t, int, unsigned, ...) = (int (*)(scmp_filter_ctx, uint32_t, int, unsigned, ...))dlsym(RTLD_NEXT, "seccomp_rule_add");
	int (*load)(scmp_filter_ctx) = (int (*)(scmp_filter_ctx))dlsym(RTLD_NEXT, "seccomp_load");
	int rc = add(filter, SCMP_ACT_ALLOW, SCMP_SYS(kill), 0);
	return rc ? rc : load(filter);
}
