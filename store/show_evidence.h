/* What stands behind a run, in text: its samples, what reruns and people say of it, who published it, how to cite it. The sections
 * of `ki show` that follow what was measured; site_evidence.h writes the same as HTML. */
#ifndef KI_STORE_SHOW_EVIDENCE_H
#define KI_STORE_SHOW_EVIDENCE_H

#include "store/screen.h"
#include "store/whole.h"

void show_artifacts(const struct whole *w, const json_t *manifest, const struct screen *on);
void show_reruns(const struct whole *w, const struct screen *on); /* signed notes and retractions too */
int show_history(struct whole *w, const struct screen *on);
int show_citation(struct whole *w, const char *config, const struct screen *on); /* `config` as for show_text */

#endif
