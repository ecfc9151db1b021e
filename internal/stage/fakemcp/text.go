package fakemcp

import "github.com/dragoman-mcp/dragoman/internal/wire/rawjson"

// texts returns the members of the answer to a request about prompts, skills and
// resources, of which there are none; nil where the server offers nothing of the kind.
func (s *Server) texts(m *message) []byte {
	fresh := ""
	if m.modern() {
		fresh = `"ttlMs":0,"cacheScope":"private",`
	}
	skills := s.cfg.Skills != nil
	switch {
	case m.Method == "prompts/list" && s.cfg.Prompts != nil:
		return rawjson.AppendArray([]byte(fresh+`"prompts":`), s.cfg.Prompts)
	case m.Method == "prompts/get" && s.cfg.Prompts != nil:
		return []byte(`"messages":[{"role":"user","content":{"type":"text","text":"Do it."}}]`)
	case m.Method == "resources/list" && skills:
		return []byte(fresh + `"resources":[]`)
	case m.Method == "resources/templates/list" && skills:
		return []byte(fresh + `"resourceTemplates":[]`)
	case m.Method == "skills/list" && skills:
		return rawjson.AppendArray([]byte(fresh+`"skills":`), s.cfg.Skills)
	case m.Method == "skills/get" && skills:
		skill := s.cfg.Given
		if skill == nil {
			skill = s.cfg.Skills[0]
		}
		return append([]byte(`"skill":`), skill...)
	}
	return nil
}
