# Sourced by the other scripts: the virtual environment in .venv.
#
#   ensure_venv base|dev    create .venv where it is missing and install the checkout, with the
#                           development tools for dev; a stamp in .venv saves the next run from
#                           doing so again until pyproject.toml changes

say() { printf '%s\n' "$*" >&2; }

find_python() {
    local candidate
    for candidate in python3.13 python3.12 python3.11 python3 python; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
                >/dev/null 2>&1; then
            command -v "$candidate"
            return
        fi
    done
    say "mgl needs Python 3.11 or newer with its venv module, and none was found."
    say "Install one (on Debian and Ubuntu: apt install python3 python3-venv), then try again."
    return 1
}

# What is installed covers what is wanted: dev covers base.
installed() {
    local kind
    for kind in "$1" dev; do
        [ "$(cat ".venv/.installed-$kind" 2>/dev/null)" = "$2" ] && return
    done
    return 1
}

ensure_venv() {
    local kind=$1 spec=. want python
    [ "$kind" = dev ] && spec=".[dev]"
    want=$(cksum <pyproject.toml)
    if [ -x .venv/bin/python ] && installed "$kind" "$want"; then
        return
    fi
    if ! .venv/bin/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
    then
        python=$(find_python) || return 1
        say "Creating .venv with $("$python" --version)"
        "$python" -m venv --clear .venv || return 1
    fi
    say "Installing mgl into .venv (once; half a gigabyte, one to three minutes)"
    if ! .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off \
        -e "$spec" 2>&1 | tee .venv/install.log | show_steps; then
        tail -n 15 .venv/install.log >&2
        say "The installation failed; its whole log is in .venv/install.log."
        return 1
    fi
    rm -f .venv/.installed-*
    printf '%s\n' "$want" >".venv/.installed-$kind"
}

# What pip is at: one line that is overwritten on a terminal, a dot a package elsewhere.
show_steps() {
    local verb what
    while read -r verb what; do
        case $verb in
            Collecting | Downloading | Installing | Building | Successfully) ;;
            *) continue ;;
        esac
        if [ -t 2 ]; then
            printf '\r\033[K  %s %.60s' "$verb" "${what%%[ (;<>=!~]*}" >&2
        elif [ "$verb" = Collecting ]; then
            printf '.' >&2
        fi
    done
    printf '\n' >&2
}
