// Package pattern compiles regular expressions when they are first used. A program that
// has a hundred of them in its packages, and asks few, then starts without them:
//
//	var year = pattern.Of(`\b(19|20)\d\d\b`)
//
//	if year.MatchString(text) { … }
//
// Tests compile each where it is declared, so that one that is wrong fails every test of
// its package, as with [regexp.MustCompile].
package pattern

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// A Pattern is a regular expression in the syntax of [regexp]. It may be used by several
// goroutines at once.
type Pattern struct {
	compiled func() *regexp.Regexp
}

// inTest is whether this is a program that `go test` made.
var inTest = len(os.Args) > 0 && strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test")

// Of is the pattern of an expression. One that is wrong panics at its first use, and in
// tests at once.
func Of(expr string) *Pattern {
	p := &Pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
	if inTest {
		p.compiled()
	}
	return p
}

// MatchString is [regexp.Regexp.MatchString].
func (p *Pattern) MatchString(s string) bool { return p.compiled().MatchString(s) }

// FindString is [regexp.Regexp.FindString].
func (p *Pattern) FindString(s string) string { return p.compiled().FindString(s) }

// FindStringIndex is [regexp.Regexp.FindStringIndex].
func (p *Pattern) FindStringIndex(s string) []int { return p.compiled().FindStringIndex(s) }

// FindStringSubmatch is [regexp.Regexp.FindStringSubmatch].
func (p *Pattern) FindStringSubmatch(s string) []string { return p.compiled().FindStringSubmatch(s) }

// FindAllString is [regexp.Regexp.FindAllString].
func (p *Pattern) FindAllString(s string, n int) []string { return p.compiled().FindAllString(s, n) }

// FindAllStringSubmatch is [regexp.Regexp.FindAllStringSubmatch].
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compiled().FindAllStringSubmatch(s, n)
}

// ReplaceAllString is [regexp.Regexp.ReplaceAllString].
func (p *Pattern) ReplaceAllString(s, by string) string { return p.compiled().ReplaceAllString(s, by) }
