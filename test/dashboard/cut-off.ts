/**
 * Runs in the page: texts that are not seen whole. Cut by a frame that hides or scrolls what is too wide, written over the
 * edge of their own box, or longer than the field that shows them. Program text may scroll; what only screen readers read
 * has no size.
 */
export const CUT_OFF = String.raw`(() => {
  const SLACK = 1.5;
  const found = [];
  const say = (text, why) => found.push('"' + text.trim().slice(0, 60) + '" ' + why);
  const nameOf = element => element.tagName.toLowerCase() + (typeof element.className === 'string' && element.className ? '.' + element.className.trim().split(/\s+/)[0] : '');
  const holds = style => style.overflowX !== 'visible' || style.overflowY !== 'visible';
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest('script, style, noscript, select, option, textarea, pre, .navigation-scroll')) continue;
    if (!parent.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    range.selectNodeContents(node);
    const text = range.getBoundingClientRect();
    if (text.width === 0 || text.height === 0) continue;
    const own = parent.closest('td, th, dd, dt, li, button, .badge, .notice, .section, section, header, main');
    if (own) {
      const box = own.getBoundingClientRect();
      if (box.width <= 1) continue;
      if (text.right > box.right + SLACK || text.left < box.left - SLACK) say(node.data, 'goes beyond its ' + nameOf(own));
    }
    for (let frame = parent; frame && frame !== document.body; frame = frame.parentElement) {
      const style = getComputedStyle(frame);
      if (style.clipPath !== 'none' || style.position === 'fixed') break;
      if (!holds(style)) continue;
      const box = frame.getBoundingClientRect();
      if (box.width <= 1) break;
      const beside = style.overflowX !== 'visible' && (text.right > box.right + SLACK || text.left < box.left - SLACK);
      const below = style.overflowY === 'hidden' && (text.bottom > box.bottom + SLACK || text.top < box.top - SLACK);
      if (beside || below) say(node.data, 'is cut by ' + nameOf(frame));
    }
  }
  const pen = document.createElement('canvas').getContext('2d');
  for (const field of document.querySelectorAll('main input, main select, nav select')) {
    if (!field.checkVisibility() || /^(checkbox|radio|hidden|datetime-local)$/.test(field.type)) continue;
    const style = getComputedStyle(field);
    pen.font = style.font;
    const shown = field.tagName === 'SELECT' ? (field.selectedOptions[0]?.text ?? '') : field.value === '' ? field.placeholder : '';
    const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    if (pen.measureText(shown).width > room + SLACK) say(shown, 'does not fit into the field ' + (field.labels?.[0]?.textContent ?? field.name));
  }
  return [...new Set(found)];
})()`;
