package secret

import (
	"slices"
	"testing"
)

func TestFind(t *testing.T) {
	reveal := func(texts []Text) (all []string) {
		for _, t := range texts {
			all = append(all, t.Reveal())
		}
		slices.Sort(all)
		return all
	}
	for _, tt := range []struct {
		name string
		got  []Text
		want []string
	}{
		{"nothing", InAddress("https://a.test/mcp?team=7#token=x"), nil},
		{"no address", InAddress("token=x"), nil},
		{"user", InAddress("https://me:p%2Fw@a.test"), []string{"me:p/w", "p/w"}},
		{"user without password", InAddress("https://me@a.test"), nil},
		{"parameters", InAddress("https://a.test?api_key=a%20b&team=7&sig=c&code=d"), []string{"a b", "c", "d"}},
		{"keys in a path", InAddress("https://a.test/s/OWQxZmI0NTU0YzlkNDgx/3f2b9c1e-7a60-4d0b-9e55-0c1d2e3f4a5b/sk-a%2Db_8f3ca09be1d74c52/mcp"), []string{"3f2b9c1e-7a60-4d0b-9e55-0c1d2e3f4a5b", "OWQxZmI0NTU0YzlkNDgx", "sk-a-b_8f3ca09be1d74c52"}},
		{"a path", InAddress("https://a.test/v1beta/openai-compatible/deployments/gpt-4o-mini-2024-07-18/internationalization/20240718202407182024"), nil},
		{"a revision", InAddress("git+https://a.test/b/c@8f3ca09be1d74c52aa108f3ca09be1d74c52aa10"), nil},
		{"flags", InArguments([]string{"-y", "pkg", "--api-key", "one", "--token=two", "--verbose", "--name=x"}), []string{"one", "two"}},
		{"header in arguments", InArguments([]string{"--header", "Authorization: Bearer one", "X-Api-Key:two"}), []string{"one", "two"}},
		{"header in a flag", InArguments([]string{"--header=Authorization: Bearer one", "-H=X-Api-Key:two", "--env=API_TOKEN=three", "--header=Accept: a/b"}), []string{"one", "three", "two"}},
		{"secret like an assignment", InArguments([]string{"--token=a_key=one", "--key=YXV0aA=="}), []string{"YXV0aA==", "a_key=one"}},
		{"address in a flag", InArguments([]string{"--url=https://a.test/s/OWQxZmI0NTU0YzlkNDgx/mcp"}), []string{"OWQxZmI0NTU0YzlkNDgx"}},
		{"address in arguments", InArguments([]string{"postgres://me:pw@a.test/db"}), []string{"me:pw", "pw"}},
		{"empty", InArguments([]string{"--token=", "--header", "Authorization: Bearer "}), nil},
		{"headers", InHeaders(Map(map[string]string{"Authorization": "Bearer one"})), []string{"Bearer one", "one"}},
		{"variables", InVariables(Map(map[string]string{"URL": "redis://:pw@a.test"})), []string{":pw", "pw", "redis://:pw@a.test"}},
		{"ordinary variables", InVariables(Map(map[string]string{"NODE_ENV": "production", "CACHE": "/home/me/.cache", "DB": "~/data/my files"})), nil},
		{"words that are secrets", InVariables(Map(map[string]string{"DB_PASS": "production", "SSH_KEY": "/home/me/.ssh"})), []string{"/home/me/.ssh", "production"}},
		{"no words", InVariables(Map(map[string]string{"A": "production1", "B": "/9j4AAQSkZJRg+g/x=", "C": "/9j4AAQSkZJRg"})), []string{"/9j4AAQSkZJRg", "/9j4AAQSkZJRg+g/x=", "production1"}},
	} {
		if got := reveal(tt.got); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
