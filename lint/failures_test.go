package lint

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// TestLeaked: E003 knows statements, crashes and places from words that help.
func TestLeaked(t *testing.T) {
	for text, want := range map[string]bool{
		"panic: runtime error: index out of range":                                          true,
		"recovered from panic: boom":                                                        true,
		"Invalid arguments for host_check_panic: missing property 'host'":                   false,
		"syntax error in SELECT id, name FROM users WHERE id = 'x'":                         true,
		"near \"x\": select * from notes":                                                   true,
		"select id from notes where id = 'x'":                                               true,
		"delete from notes where id in (1, 2)":                                              true,
		"update notes set title = 'x'":                                                      true,
		"insert into notes (id) values (1)":                                                 true,
		"INSERT INTO notes VALUES (1)":                                                      true,
		"select `id`, `name` from `notes` where `id` = 1 - SQLITE_ERROR: no such column":    true,
		"select n.id from notes n join tags t on n.id = t.note where t.name = $1":           true,
		"select id from [notes] where [id] = @p0":                                           true,
		"delete from `notes` where `id` = 1":                                                true,
		"update `notes` set `title` = 'x'":                                                  true,
		"insert into `notes` (`id`) values (1) - SQLITE_CONSTRAINT":                         true,
		"No project is open. Select one from the list of work_list_projects.":               false,
		"Please select a name from those where the state is open.":                          false,
		"The token has expired. Update it in the settings where you made it.":               false,
		"Nothing to update in the set that you gave; update the set first.":                 false,
		"path: expected an absolute path such as /home/ada/notes.txt":                       false,
		"url: must begin with postgres://":                                                  false,
		"url: must begin with \"postgres://\", e.g. \"postgres://db.example/shop\"":         false,
		"such as /home/ada/notes.txt, and not /root/app/main.go":                            true,
		"could not connect to postgres://app:pw@10.0.0.5:5432/shop":                         true,
		"ENOENT: no such file, open '/home/ada/app/x.json'":                                 true,
		"To delete from a locked folder, unlock it: see where it is with work_list_folders": false,
	} {
		if got := leaked(text); (got != "") != want {
			t.Errorf("%q: found %q", text, got)
		}
	}
}

// TestErrorWithID: an error that names its line in the log is none the worse for it.
func TestErrorWithID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, "legacy")
		m.result = func(q query, was string) string {
			if q.Params.Name == "notes_get_note" {
				return fmt.Sprintf(`{"isError":true,"content":[{"type":"text","text":"internal error %d"}]}`, m.calls)
			}
			return was
		}
		r, err := Run(t.Context(), []Target{m.overPipe()}, Options{})
		must(t, err)
		if got := rulesOf(r); slices.Contains(got, "O010") {
			t.Errorf("fires %v", got)
		}
	})
}
