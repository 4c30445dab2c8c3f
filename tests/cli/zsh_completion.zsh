#!/usr/bin/env zsh
# SPDX-License-Identifier: MIT
# usage: zsh_completion.zsh FOLDER LINE
# Prints what an interactive zsh, with FOLDER in front of its function path, offers behind LINE.
zmodload zsh/zpty
zpty shell "PS1= TERM=dumb zsh -f -i"
zpty -w shell "fpath=($1 \$fpath); autoload -Uz compinit; compinit -D -u; PROMPT=
compadd() {
  if [[ \${@[1,(i)(-|--)]} != *-(O|A|D)\\ * ]]; then
    local -a found; local word
    builtin compadd -A found \"\$@\"
    for word in \$found; do print -r -- \"<\$word>\"; done
  fi
  builtin compadd \"\$@\"
}
zle-line-init() { print READY=\$((1 + 1)) }
zle -N zle-line-init"
# Keys that come before the line editor reads them would be the terminal's.
zpty -r -m shell seen '*READY=2*'
zpty -w -n shell "$2"$'\t'
# Whatever the answer is, this comes after it: the line is thrown away and another one runs.
zpty -w -n shell $'\C-u'"print DONE=\$((2 + 3))"$'\n'
zpty -r -m shell seen '*DONE=5*'
print -r -- "$seen" | grep -o '<[^<>]*>' | tr -d '<>'
zpty -d shell
