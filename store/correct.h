/* Making corrections (correction.h): signing one, and letting one in. */
#ifndef KI_STORE_CORRECT_H
#define KI_STORE_CORRECT_H

#include "core/sign.h"
#include "store/correction.h"

/* Why a run was retracted; OTHER unless said. */
bool correct_code_known(const char *code);
void correct_put_codes(struct buf *out); /* all of them, comma-separated */

struct correction_text {
	const char *type;  /* retract, note, undo */
	struct digest run;
	const char *code;  /* of a retraction */
	const char *text;  /* the reason, or the note; NULL for an undo without one */
	const char *entry; /* id of what an undo undoes */
};
/* Appends the envelope of a correction made now, signed with `key`. ERR_DATA when a text is not UTF-8. */
int correct_sign(const struct correction_text *what, struct sign_key *key, struct buf *envelope, struct err *e);

/* Appends the entry that an envelope holds: signed by an approved key and by nobody whose signature does not hold, about a run of the
 * store, whole and within the limits; else ERR_DATA that says what is wrong, and nothing is changed. The same envelope twice changes
 * nothing. `id` receives its id. */
int correct_admit(struct store *st, const struct signers *signers, struct slice envelope, char id[DIGEST_TEXT + 1], struct err *e);

/* Whether an entry says what its envelope holds; true for entries of other kinds. Whose signature it is was asked when it came in. */
bool correct_holds(const json_t *entry);

#endif
