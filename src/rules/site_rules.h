// site_rules.h -- the text of site rules: which site, which way.
//
// Threads   any; not from inside an allocation (modules.h).
// Fails     a rule with a mistake prints a line; the others count.
//
// A line is `where -> way, way…`; a # begins a comment. docs/site-rules.md has the words.
#pragma once

#include "base/compiler.h"

// Read the rules in the file that option site_rules names, if it names one.
HAK_INTERNAL void hak_site_rules_read(void);
