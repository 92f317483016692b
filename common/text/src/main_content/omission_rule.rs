//! The rules that omit text from the main content. Each omitted piece of text names one rule, so that a
//! person can see why it was omitted.

/// Reason why a piece of text is not part of the main content. All text that an omitted element hides has one
/// rule. If several rules apply to the element, the first counts of: its name, its role, whether it is
/// hidden, its classes, its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OmissionRule {
    /// Menus, breadcrumbs, tables of contents, links to the previous and the next page, skip links.
    Navigation,
    /// Header of the site.
    Header,
    /// Footer of the site, copyright and legal notes.
    Footer,
    /// Side bars next to the text.
    SideBar,
    /// Search forms of the site.
    Search,
    /// Dialogs, alerts and cookie notices.
    Dialog,
    /// Buttons and lists of choices.
    Control,
    /// Advertisements, share links and related pages.
    Promotion,
    /// Text that a browser does not show.
    Hidden,
    /// Title of the page.
    Title,
    /// Text outside the main element, when the main element is the main content.
    OutsideMain,
}

impl OmissionRule {
    /// Name of the rule in answers to clients.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Navigation => "navigation",
            Self::Header => "header",
            Self::Footer => "footer",
            Self::SideBar => "side-bar",
            Self::Search => "search",
            Self::Dialog => "dialog",
            Self::Control => "control",
            Self::Promotion => "promotion",
            Self::Hidden => "hidden",
            Self::Title => "title",
            Self::OutsideMain => "outside-main",
        }
    }
}
