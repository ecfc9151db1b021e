package config

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Excerpts are shown for files that may not even parse, so secrets are found in
// them by the look of the text, generously: an excerpt that hides too much is
// still useful, one that shows a key is not.
var (
	secretBlock = regexp.MustCompile(`^[\s-]*["']?(env|environment|headers|api_keys)["']?\s*:`)
	secretFlow  = regexp.MustCompile(`\b(env|environment|headers|api_keys)["']?\s*:\s*[{\[]`)
	secretKey   = regexp.MustCompile(`(?i)["']?[\w-]*(key|token|secret|passw|authorization|cookie|credential|pwd)[\w-]*["']?\s*[:=]\s*`)
	secretFlag  = regexp.MustCompile(`(?i)--?[\w-]*(key|token|secret|passw|auth|credential|pwd)[\w-]*["']?\s*[,\s=]\s*`)
	secretValue = regexp.MustCompile(`(?i)\b((bearer|basic)\s+|sk-|ghp_|gho_|github_pat_|glpat-|xox[a-z]-|akia)`)
	userInfo    = regexp.MustCompile(`://[^/@\s"']+@`)
	urlQuery    = regexp.MustCompile(`://[^\s"'?]+\?`)

	// A reference shows no secret, only where one comes from.
	references    = regexp.MustCompile(`\$\{[^}]*\}`)
	onlyReference = regexp.MustCompile(`^["']?(?i:(bearer|basic)\s+)?(\$\{(env:)?\w*\}?)+["']?\s*$`)
)

// isSecret reports whether values of a key are hidden.
func isSecret(key string) bool {
	return secretBlock.MatchString(key+":") || secretKey.MatchString(key+":")
}

// withoutSecrets returns line i with secrets replaced, and how many characters
// at its beginning are as they were.
func (s *source) withoutSecrets(i int) (text string, intact int) {
	line := s.lines[i]
	start := len(line) // where the first mask begins
	mask := func(from, to int) {
		if from >= to || onlyReference.MatchString(line[from:to]) {
			return
		}
		start = min(start, from)
	}
	if s.insideSecretBlock(i) {
		from := strings.IndexByte(line, ':') + 1
		if from == 0 {
			from = len(line) - len(strings.TrimLeft(line, " \t-"))
		}
		mask(from+spaces(line[from:]), len(line))
	}
	for _, key := range s.misspelt {
		if _, value, found := strings.Cut(line, key); found {
			mask(len(line)-len(strings.TrimLeft(value, "\"': \t")), len(line))
		}
	}
	for _, m := range secretFlow.FindAllStringIndex(line, -1) {
		mask(m[1], m[1]+end(line[m[1]:], "}]"))
	}
	for _, expr := range []*regexp.Regexp{secretKey, secretFlag, secretValue} {
		for _, m := range expr.FindAllStringIndex(line, -1) {
			from := m[1]
			if expr == secretValue {
				from = m[0]
			}
			mask(from, from+end(line[from:], ",}]"))
		}
	}
	for _, m := range userInfo.FindAllStringIndex(line, -1) {
		mask(m[0]+3, m[1])
	}
	for _, m := range secret.Segments(line) {
		mask(m[0], m[1])
	}
	for _, m := range urlQuery.FindAllStringIndex(line, -1) {
		mask(m[1], m[1]+end(line[m[1]:], ",}] \"'"))
	}
	if start == len(line) {
		return line, utf8.RuneCountInString(line)
	}
	// What follows a secret on its line is left out, too: where exactly the
	// secret ends cannot be known in a text that does not parse.
	return line[:start] + secret.Hidden, utf8.RuneCountInString(line[:start])
}

// insideSecretBlock reports whether line i belongs to a block, by indentation,
// whose values are secrets.
func (s *source) insideSecretBlock(i int) bool {
	indent := spaces(s.lines[i])
	for i--; i >= 0 && indent > 0; i-- {
		line := s.lines[i]
		if strings.TrimSpace(line) == "" || spaces(line) >= indent {
			continue
		}
		if secretBlock.MatchString(line) {
			return true
		}
		indent = spaces(line)
	}
	return false
}

func spaces(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// end returns the length of the value that text begins with: to the closing
// quote, or to one of the characters that end it.
func end(text, stops string) int {
	if text != "" && (text[0] == '"' || text[0] == '\'') {
		if i := strings.IndexByte(text[1:], text[0]); i >= 0 {
			return i + 2
		}
		return len(text)
	}
	for i := 0; i < len(text); i++ {
		if strings.HasPrefix(text[i:], "${") {
			if j := strings.IndexByte(text[i:], '}'); j > 0 {
				i += j
				continue
			}
		}
		if strings.IndexByte(stops, text[i]) >= 0 {
			return i
		}
	}
	return len(text)
}
