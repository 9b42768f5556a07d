#include "verify/verdict.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const double sigma_host = 0.025;       /* between hosts, until measured */
static const double timer_ns = 32;            /* resolution of the source's timer */
static const double source_share = 1.03, source_ns = 1500; /* what T_src may exceed T_dev by, device class */
static const double confirm = 0.04879016416943205; /* ln 1.05 */
static const double differ = 0.09531017980432493;  /* ln 1.10 */

static const char *const code_text[] = {
    [VERDICT_INVALID_RUN] = "invalid_run",
    [VERDICT_NOT_TIMED] = "not_timed",
    [VERDICT_CONFIRMED] = "confirmed",
    [VERDICT_REFUTED] = "refuted",
    [VERDICT_SLOWER_THAN_RERUN] = "slower_than_rerun",
    [VERDICT_INCONCLUSIVE] = "inconclusive",
    [VERDICT_HOST_DEPENDENT] = "host_dependent",
    [VERDICT_NOT_COMPARABLE] = "not_comparable",
    [VERDICT_TOO_FAST] = "too_fast",
    [VERDICT_FAR] = "far",
    [VERDICT_PLAUSIBLE] = "plausible",
};

const char *verdict_text(enum verdict_code c)
{
    return code_text[c];
}

bool verdict_parse(const char *text, enum verdict_code *out)
{
    for (size_t i = 0; i < sizeof code_text / sizeof code_text[0]; i++)
        if (strcmp(code_text[i], text) == 0) {
            *out = (enum verdict_code)i;
            return true;
        }
    return false;
}

const char *rerun_class_text(enum rerun_class c)
{
    static const char *const text[] = { [CLASS_DEVICE] = "device", [CLASS_MIXED] = "mixed", [CLASS_LAUNCH] = "launch" };
    return text[c];
}

enum rerun_class rerun_class_of(double t_dev_ns, double t_src_ns, double h_ns, double flush_ns, double *rho)
{
    *rho = h_ns / (flush_ns + t_dev_ns);
    if (*rho >= 1.4)
        return CLASS_LAUNCH;
    return *rho <= 0.5 && t_src_ns <= fmax(source_share * t_dev_ns, t_dev_ns + source_ns) ? CLASS_DEVICE : CLASS_MIXED;
}

double verdict_width_p90(double median_ns)
{
    return median_ns < 0.1e6 ? 0.171 : median_ns < 0.5e6 ? 0.161 : median_ns < 2e6 ? 0.064 : median_ns < 10e6 ? 0.030 : 0.011;
}

double verdict_t95(int degrees)
{
    static const double t[] = { 6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331, 1.8125, 1.7959, 1.7823, 1.7709, 1.7613, 1.7531 };
    return degrees < 1 ? INFINITY : degrees <= 15 ? t[degrees - 1] : 1.645;
}

double verdict_t995(int degrees)
{
    static const double t[] = { 63.6567, 9.9248, 5.8409, 4.6041, 4.0321, 3.7074, 3.4995, 3.3554, 3.2498, 3.1693, 3.1058, 3.0545, 3.0123, 2.9768, 2.9467 };
    return degrees < 1 ? INFINITY : degrees <= 15 ? t[degrees - 1] : 2.576;
}

/* Within-run spread of the record: its own quantiles where they mean something, else its size class. */
static double record_spread(const struct verdict_input *in)
{
    double width = in->width_p90 > 0 ? in->width_p90 : verdict_width_p90(in->median_ns);
    if (in->samples >= 8 && in->p20_ns > 0 && in->p80_ns > in->p20_ns)
        width = log(in->p80_ns / in->p20_ns);
    return fmax(width / 1.683, timer_ns / (in->median_ns * sqrt(12)));
}

static double hypotenuse(double a, double b, double c)
{
    return sqrt(a * a + b * b + c * c);
}

/* d, U95, U99 of the block medians against the record. */
static void compare_logarithms(const struct verdict_input *in, struct verdict *v)
{
    double mean = 0, squares = 0, k = in->blocks;
    for (int i = 0; i < in->blocks; i++)
        mean += log(in->block_ns[i]) / k;
    for (int i = 0; i < in->blocks; i++)
        squares += (log(in->block_ns[i]) - mean) * (log(in->block_ns[i]) - mean);
    v->d = mean - log(in->median_ns);
    v->s_record = record_spread(in);
    v->s_block = in->blocks > 1 ? sqrt(squares / (k - 1)) : 0;
    double n = in->samples < 1 ? 1 : in->samples > 20 ? 20 : (double)in->samples;
    double record = 1.2533 * v->s_record / sqrt(n), block = v->s_block / sqrt(k);
    v->u95 = hypotenuse(1.645 * record, verdict_t95(in->blocks - 1) * block, 0);
    v->u99 = hypotenuse(2.576 * record, verdict_t995(in->blocks - 1) * block, 2.576 * sigma_host);
}

static enum verdict_code judge_native(const struct verdict_input *in, struct verdict *v)
{
    v->against_light = in->light_ns > 0 && in->median_ns < in->light_ns;
    if (v->against_light)
        return VERDICT_TOO_FAST;
    if (!in->same_product)
        return VERDICT_NOT_COMPARABLE;
    return in->median_ns > 2 * in->t_dev_ns ? VERDICT_FAR : VERDICT_PLAUSIBLE;
}

static enum verdict_code judge_device_class(const struct verdict_input *in, const struct verdict *v)
{
    double beyond = fmax(differ, v->u99);
    if (fabs(v->d) + v->u95 <= confirm)
        return VERDICT_CONFIRMED;
    if (v->d > beyond && !in->framework)
        return VERDICT_REFUTED;
    return v->d < -beyond && !in->framework ? VERDICT_SLOWER_THAN_RERUN : VERDICT_INCONCLUSIVE;
}

static enum verdict_code judge_upstream(const struct verdict_input *in, struct verdict *v)
{
    v->against_light = in->light_ns > 0 && in->median_ns < in->light_ns;
    if (v->against_light)
        return VERDICT_REFUTED;
    if (!in->same_product)
        return VERDICT_NOT_COMPARABLE;
    if (!in->same_code)
        return VERDICT_INCONCLUSIVE;
    if (v->class == CLASS_DEVICE)
        return judge_device_class(in, v);
    bool below_device = in->median_ns < in->t_dev_ns * exp(-fmax(differ, v->u99));
    return below_device && in->framework ? VERDICT_INCONCLUSIVE : below_device ? VERDICT_REFUTED : VERDICT_HOST_DEPENDENT;
}

/* Class and effect are facts of the times; only the code waits for the gate. */
struct verdict verdict_of(const struct verdict_input *in)
{
    struct verdict v = { .code = VERDICT_INVALID_RUN };
    bool times = in->timed && in->blocks >= 2 && in->blocks <= VERDICT_BLOCKS_MAX && in->median_ns > 0 && in->t_dev_ns > 0;
    if (times) {
        v.class = rerun_class_of(in->t_dev_ns, in->t_src_ns, in->h_ns, in->flush_ns, &v.rho);
        compare_logarithms(in, &v);
    }
    if (!in->gate)
        return v;
    if (!in->timed)
        v.code = VERDICT_NOT_TIMED;
    else if (times)
        v.code = in->native ? judge_native(in, &v) : judge_upstream(in, &v);
    return v;
}

enum verdict_code verdict_combine(const enum verdict_code codes[], int n)
{
    int refuted = 0;
    for (int i = 0; i < n; i++)
        refuted += codes[i] == VERDICT_REFUTED;
    if (n < 1)
        return VERDICT_INVALID_RUN;
    return codes[n - 1] == VERDICT_REFUTED && refuted < 2 ? VERDICT_INCONCLUSIVE : codes[n - 1];
}
