// Package qualified has the one form of a name that says whose it is: label__name, of a
// server's label and the name of a tool, a prompt or a resource at it. Rules, limits,
// approvals and patterns of the configuration mean things by it, whatever the names are
// that models are offered.
package qualified

import "strings"

// Separator stands between a label and a name. No label has it; a name may.
const Separator = "__"

// Name returns label__name. With an empty name it is what all names of the server begin
// with.
func Name(label, name string) string { return label + Separator + name }

// Split takes a name apart at the first separator; ok is false where there is none.
func Split(qualified string) (label, name string, ok bool) {
	return strings.Cut(qualified, Separator)
}
