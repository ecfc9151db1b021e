package secret

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Secrets are found by the names that they have, where there is no type for them.
const (
	names    = `key|token|secret|passw|auth|credential|pwd`
	assigned = `[\w-]*(` + names + `)[\w-]*(=|:\s*((bearer|basic)\s+)?)`
)

var (
	flag = regexp.MustCompile(`(?i)^--?[\w-]*(` + names + `)[\w-]*$`)
	// A header or a variable may be in the argument of its flag. The flag itself comes
	// first: what follows a --token= is all secret, whatever it looks like.
	assignment = regexp.MustCompile(`(?i)^(` + assigned + `|--?[\w-]+=` + assigned + `)`)
	parameter  = regexp.MustCompile(`(?i)(` + names + `|sig|code)`)
	// A word, or a path of two names or more, that stands in a variable which does not
	// sound like a secret is none: it is in half of all messages.
	variable = regexp.MustCompile(`(?i)(` + names + `|pass|sig|code|cookie|session|salt|pin)`)
	ordinary = regexp.MustCompile(`^([A-Za-z]+|~?(/[\w .-]+){2,}/?)$`)
	// Who has the whole address of some servers has all their rights: it holds a key or a
	// UUID that nobody can guess. No word, version or date is as long without a break.
	uuid     = regexp.MustCompile(`(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	unbroken = regexp.MustCompile(`[A-Za-z0-9]{16,}`)
	// An address of the web, without its query. Parts of it can be references to variables.
	web       = regexp.MustCompile(`(?i)\bhttps?://(\$\{[^}]*\}|[^\s"'?#])+`)
	reference = regexp.MustCompile(`\$\{[^}]*\}`)
)

// IsFlag reports whether an argument is a flag whose value, which is the argument
// after it, is a secret by its name, such as --token.
func IsFlag(argument string) bool { return flag.MatchString(argument) }

// IsParameter reports whether the parameter of an address holds a secret by its name.
func IsParameter(name string) bool { return parameter.MatchString(name) }

// IsSegment reports whether the segment of an address's path is a secret by its look, such
// as the last but one of https://a.test/s/8f3ca09be1d74c52aa10/mcp.
func IsSegment(segment string) bool {
	if uuid.MatchString(segment) {
		return true
	}
	return slices.ContainsFunc(unbroken.FindAllString(segment, -1), func(run string) bool {
		return strings.ContainsAny(run, "0123456789") && strings.Trim(run, "0123456789") != ""
	})
}

// Segments returns where in a text those segments of the paths of addresses begin and end that
// are secrets by their look.
func Segments(text string) (found [][2]int) {
	for _, at := range web.FindAllStringIndex(text, -1) {
		from := at[0]
		for i, segment := range strings.Split(text[at[0]:at[1]], "/") {
			to := from + len(segment)
			if i > 2 && IsSegment(reference.ReplaceAllLiteralString(segment, "")) { // behind scheme and host
				found = append(found, [2]int{from, to})
			}
			from = to + len("/")
		}
	}
	return found
}

// HideSegments returns text with the segments of paths hidden that are secrets by their look.
func HideSegments(text string) string {
	for _, at := range slices.Backward(Segments(text)) {
		text = text[:at[0]] + Hidden + text[at[1]:]
	}
	return text
}

// Assigned returns where the secret begins in a text such as --token=x or
// Authorization: Bearer x, also behind a flag in the same text; ok is false where there is none.
func Assigned(text string) (at int, ok bool) {
	at = len(assignment.FindString(text))
	return at, at > 0 && at < len(text)
}

// InAddress returns the secrets in an address: of its user, of its parameters, and, where it
// is one of the web, of its path.
func InAddress(address string) (found []Text) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil
	}
	if password, ok := u.User.Password(); ok {
		// Together they are what is sent (RFC 7617).
		found = append(found, New(password), New(u.User.Username()+":"+password))
	}
	if u.Scheme == "http" || u.Scheme == "https" {
		for segment := range strings.SplitSeq(u.Path, "/") {
			if IsSegment(segment) {
				found = append(found, New(segment))
			}
		}
	}
	for name, values := range u.Query() {
		for _, value := range values {
			if IsParameter(name) {
				found = append(found, New(value))
			}
		}
	}
	return found
}

// InArguments returns the secrets in the arguments of a program.
func InArguments(arguments []string) (found []Text) {
	for i, argument := range arguments {
		_, value, _ := strings.Cut(argument, "=") // as in --url=https://a.test
		found = append(append(found, InAddress(argument)...), InAddress(value)...)
		if at, ok := Assigned(argument); ok {
			found = append(found, New(argument[at:]))
		}
		if i > 0 && IsFlag(arguments[i-1]) {
			found = append(found, New(argument))
		}
	}
	return found
}

// InHeaders returns the values of headers, and what stands in them after the name of
// a scheme (RFC 9110 section 11.4), such as Bearer.
func InHeaders(headers map[string]Text) (found []Text) {
	for _, value := range headers {
		found = append(found, value)
		if _, credentials, ok := strings.Cut(value.Reveal(), " "); ok {
			found = append(found, New(credentials))
		}
	}
	return found
}

// InVariables returns the values of variables, and the secrets in those that are
// addresses. A word or a path is none where the variable's name is not that of a secret.
func InVariables(variables map[string]Text) (found []Text) {
	for name, value := range variables {
		if variable.MatchString(name) || !ordinary.MatchString(value.Reveal()) {
			found = append(append(found, value), InAddress(value.Reveal())...)
		}
	}
	return found
}
