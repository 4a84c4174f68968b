//! Where golden files are compared. The tests of the program use it too.

/// Compares a text with its golden file in `snapshots/`, or writes it.
pub fn golden(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
